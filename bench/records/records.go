// Package records writes the measurements of a benchmark as JSON lines and starts the report generator on them.
package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Default directories of the benchmarks, from the root of the source tree, and the generator of all reports.
const (
	Results   = "build/bench/results"
	Reports   = "build/bench/reports"
	Generator = "bench/report/build"
)

// File has the records of one run.
type File struct {
	file      *os.File
	generator string
	written   int
}

// Create creates DIRECTORY/NAME-TIME.jsonl. Its first record has the facts of the machine, from the generator.
func Create(directory, name, generator string) (*File, error) {
	facts, err := exec.Command(generator, "--facts").Output()
	if err != nil {
		return nil, fmt.Errorf("the report generator %s (run from the root of the source tree): %w", generator, err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(directory, name+"-"+time.Now().UTC().Format("20060102-150405")+".jsonl")
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(facts); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{file: file, generator: generator}, nil
}

// Path returns the path of the file.
func (f *File) Path() string { return f.file.Name() }

// Facts appends facts of the run, which are no measurements.
func (f *File) Facts(facts map[string]any) error {
	return json.NewEncoder(f.file).Encode(map[string]any{"facts": facts})
}

// Write appends a record at once, so that a failed run keeps its measurements.
func (f *File) Write(record any) error {
	f.written++
	return json.NewEncoder(f.file).Encode(record)
}

// Report makes the page NAME.md in a directory, with its plots, and prints it. Without measurements there is no report.
func (f *File) Report(directory, name string) error {
	if f.written == 0 {
		return nil
	}
	generate := exec.Command(f.generator, f.Path(), "--out", directory, "--name", name, "--print")
	generate.Stdout, generate.Stderr = os.Stdout, os.Stderr
	if err := generate.Run(); err != nil {
		return fmt.Errorf("the report of %s: %w", f.Path(), err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
