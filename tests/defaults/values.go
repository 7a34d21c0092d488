package defaults

import (
	"bytes"
	"encoding/json"
	"slices"
)

// node is the part of a JSON schema that documents a value.
type node struct {
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Properties  map[string]node `json:"properties"`
}

// readValues reads the descriptions in the schema of the chart's values.
func readValues(text string) ([]Documented, error) {
	var top node
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		return nil, err
	}
	return valuesBelow("", top)
}

func valuesBelow(path string, n node) ([]Documented, error) {
	var all []Documented
	var names []string
	for name := range n.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		below := n.Properties[name]
		all = append(all, at(path+name, below.Description)...)
		if below.Default != nil {
			var value bytes.Buffer
			if err := json.Compact(&value, below.Default); err != nil {
				return nil, err
			}
			all = append(all, Documented{path + name, "= " + value.String()})
		}
		deeper, err := valuesBelow(path+name+".", below)
		if err != nil {
			return nil, err
		}
		all = append(all, deeper...)
	}
	return all, nil
}
