package defaults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var (
	protoOpens = regexp.MustCompile(`^\s*(?:message|enum|oneof|service) (\w+) \{`)
	protoField = regexp.MustCompile(`^\s*(?:(?:repeated |optional )?[\w.<>, ]+ |)(\w+) = \d+`)
	protoCall  = regexp.MustCompile(`^\s*rpc (\w+)\(`)
)

// readProto reads the comments of messages, fields, enumerations and calls.
func readProto(text string) ([]Documented, error) {
	var all []Documented
	var within []string // names of the open blocks; an empty name: braces of an option
	var comment []string
	for line := range strings.Lines(text) {
		code, remark, _ := strings.Cut(line, "//")
		if strings.TrimSpace(code) == "" && remark != "" {
			comment = append(comment, remark)
			continue
		}
		name := ""
		for _, element := range []*regexp.Regexp{protoOpens, protoCall, protoField} {
			if match := element.FindStringSubmatch(code); match != nil {
				name = match[1]
				break
			}
		}
		if name != "" && len(comment) > 0 {
			all = append(all, at(join(append(within, name)), strings.Join(comment, " "))...)
		}
		comment = nil
		for range strings.Count(code, "{") {
			within = append(within, "")
		}
		if protoOpens.MatchString(code) {
			within[len(within)-1] = name
		}
		within = within[:max(0, len(within)-strings.Count(code, "}"))]
	}
	return all, nil
}

func join(names []string) string {
	var named []string
	for _, name := range names {
		if name != "" {
			named = append(named, name)
		}
	}
	return strings.Join(named, ".")
}

// readTypes reads the comments of Go types and their fields. A marker is a separate entry.
func readTypes(text string) ([]Documented, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []Documented
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			declared := spec.(*ast.TypeSpec)
			all = append(all, typeComments(declared.Name.Name, general.Doc, declared.Doc)...)
			if fields, ok := declared.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						all = append(all, typeComments(declared.Name.Name+"."+name.Name, field.Doc)...)
					}
				}
			}
		}
	}
	return all, nil
}

// defaultMarker precedes the value that the API server sets.
const defaultMarker = "+kubebuilder:default="

func typeComments(element string, groups ...*ast.CommentGroup) []Documented {
	var all []Documented
	var prose []string
	for _, group := range groups {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			switch {
			case strings.HasPrefix(line, defaultMarker):
				all = append(all, Documented{element, line})
			case !strings.HasPrefix(line, "+"):
				prose = append(prose, line)
			}
		}
	}
	return append(at(element, strings.Join(prose, " ")), all...)
}
