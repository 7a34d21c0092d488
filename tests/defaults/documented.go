// Package defaults lists every default that the project documents: in protos, in the types of custom resources, in flags, in
// configuration keys and in chart values. Its test requires a proof of each.
package defaults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Documented is one default as its source documents it.
type Documented struct {
	// Where is the file below the root and the element: a message's field, a type's field, a flag, a key or a value's path.
	Where string
	// Text is the clause that states the default, in one line; or the value itself after `= `, if the source has a field for it.
	Text string
}

func (d Documented) String() string { return d.Where + ": " + d.Text }

// Collect lists the documented defaults of the tree at `root`, in the order of their sources.
func Collect(root string) ([]Documented, error) {
	var all []Documented
	for _, source := range []struct {
		glob string
		read func(text string) ([]Documented, error)
	}{
		{"proto/sluice/v1/*.proto", readProto},
		{"operator/api/v1alpha1/*_types.go", readTypes},
		{"controlplane/cmd/*/*.go", readFlags},
		{"operator/cmd/*/*.go", readFlags},
		{"gateway/src/config/flags.cc", readGatewayFlags},
		{"gateway/src/config/key_table.cc", readKeys},
		{"charts/sluice/values.schema.json", readValues},
	} {
		files, err := filepath.Glob(filepath.Join(root, source.glob))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s matches no file (%w)", source.glob, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			found, err := source.read(string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, d := range found {
				all = append(all, Documented{name + " " + d.Where, d.Text})
			}
		}
	}
	return all, nil
}

var (
	// statesDefault finds a clause about a field without a value. It accepts more than documented defaults, so that a new wording
	// is not missed; for the others, the table states that they document none.
	statesDefault = regexp.MustCompile(`(?i)\b(?:empty|unset|absent|omitted|unspecified|defaults?)\b|^without\b|` +
		`(?:^|[ (,])(?:0|none|null|false|-1)(?::| means |, which )|\bnot (?:given|set)\b`)
	// endsClause splits a text into clauses: sentences, and parts of a sentence between semicolons.
	endsClause = regexp.MustCompile(`[.;](?:\s+|$)`)
)

// clauses returns the parts of a text that state a default, without the full stop.
func clauses(text string) []string {
	var found []string
	for _, clause := range endsClause.Split(strings.Join(strings.Fields(text), " "), -1) {
		if statesDefault.MatchString(clause) {
			found = append(found, clause)
		}
	}
	return found
}

// at returns an entry for each clause of a text about an element.
func at(element, text string) []Documented {
	var all []Documented
	for _, clause := range clauses(text) {
		all = append(all, Documented{element, clause})
	}
	return all
}
