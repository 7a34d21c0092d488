package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// pathFormat is the beginning of an --output that selects fields.
const pathFormat = "jsonpath="

// referenceKey is the field of an item that has its kind and name for `-o name`.
const referenceKey = "reference"

// parsePath parses the template of an --output. As kubectl does, it accepts a single path without braces.
func parsePath(format string) (*jsonpath.JSONPath, error) {
	template := strings.TrimPrefix(format, pathFormat)
	if !strings.Contains(template, "{") {
		template = "{" + template + "}"
	}
	parsed := jsonpath.New("output").AllowMissingKeys(true)
	if err := parsed.Parse(template); err != nil {
		return nil, usagef("--output %q: %w; write a template as in jsonpath='{.items[*].meta.name}'", format, err)
	}
	return parsed, nil
}

// writePath writes the fields of a value that a template selects, and ends the line.
func writePath(to io.Writer, shown any, format string) error {
	parsed, err := parsePath(format)
	if err != nil {
		return err
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	var selected strings.Builder
	if err := parsed.Execute(&selected, fields); err != nil {
		return usagef("--output %q: %w", format, err)
	}
	_, err = fmt.Fprintln(to, strings.TrimSuffix(selected.String(), "\n"))
	return err
}

// writeNames writes kind and name of each item, a line for each.
func writeNames(to io.Writer, shown any) error {
	object, _ := shown.(map[string]any)
	items, several := object["items"].([]map[string]any)
	if !several {
		items = []map[string]any{object}
	}
	for _, item := range items {
		reference, has := item[referenceKey]
		if !has {
			return usagef("--output name: this command shows no objects with names; json and yaml are possible")
		}
		if _, err := fmt.Fprintln(to, reference); err != nil {
			return err
		}
	}
	return nil
}
