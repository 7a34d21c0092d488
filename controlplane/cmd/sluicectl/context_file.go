package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// configuration is the content of the file that names control planes. Its fields have the names of the flags.
type configuration struct {
	// Current is the name of the context that is used without --context.
	Current  string                    `json:"current-context,omitempty"`
	Contexts map[string]*serverContext `json:"contexts,omitempty"`
}

// serverContext says how to connect to one control plane.
type serverContext struct {
	Server      string `json:"server,omitempty"`
	Insecure    bool   `json:"insecure,omitempty"`
	CA          string `json:"tls-ca,omitempty"`
	Certificate string `json:"tls-cert,omitempty"`
	Key         string `json:"tls-key,omitempty"`
}

// configurationFile returns the path of the file. The XDG base directory specification wants a relative $XDG_CONFIG_HOME to be ignored.
func configurationFile() (string, error) {
	folder := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usagef("there is no place for contexts: set XDG_CONFIG_HOME or HOME: %w", err)
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "sluice", "config.yaml"), nil
}

// readConfiguration returns the content of the file, an empty one if there is no file.
func readConfiguration() (*configuration, error) {
	read := &configuration{Contexts: map[string]*serverContext{}}
	path, err := configurationFile()
	if err != nil { // a service without a home directory has no contexts
		return read, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return read, nil
	}
	if err != nil {
		return nil, usagef("the contexts cannot be read: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, read); err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	for name, context := range read.Contexts {
		if context == nil {
			read.Contexts[name] = &serverContext{}
		}
	}
	return read, nil
}

// named returns a context. Errors: usageError.
func (c *configuration) named(name string) (*serverContext, error) {
	if found := c.Contexts[name]; found != nil {
		return found, nil
	}
	if len(c.Contexts) == 0 {
		return nil, usagef("there is no context %q: `sluicectl context set` makes one", name)
	}
	return nil, usagef("there is no context %q; %s are possible", name, strings.Join(slices.Sorted(maps.Keys(c.Contexts)), ", "))
}

// write replaces the file. After a failure it has its old or its new content.
func (c *configuration) write() error {
	path, err := configurationFile()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("the contexts cannot be stored: %w", err)
	}
	file, err := os.CreateTemp(folder, "config.yaml.*") // with mode 0600
	if err != nil {
		return fmt.Errorf("the contexts cannot be stored: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // it is not there any more after success
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("the contexts cannot be stored: %w", err)
	}
	return os.Rename(file.Name(), path)
}
