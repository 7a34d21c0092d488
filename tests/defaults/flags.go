package defaults

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
)

// definesFlag finds the functions of package pflag that define a flag: StringVar, BoolVarP and so on.
var definesFlag = regexp.MustCompile(`^(?:Bool|String|Int|Uint|Float|Duration|IP|Count|Bytes|Text)\w*$|^VarP?$`)

// readFlags reads the help texts of the flags that a Go program defines.
func readFlags(text string) ([]Documented, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []Documented
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !definesFlag.MatchString(function.Sel.Name) || len(call.Args) < 3 {
			return true
		}
		name := ""
		for _, argument := range call.Args[:2] { // the variable's address may come first
			if name == "" {
				name = literal(argument)
			}
		}
		if name != "" {
			all = append(all, at("--"+name, literal(call.Args[len(call.Args)-1]))...)
			if value := source(text, call.Args[len(call.Args)-2]); !isZero.MatchString(value) {
				all = append(all, Documented{"--" + name, "= " + value})
			}
		}
		return true
	})
	return all, nil
}

// isZero finds default values that mean none.
var isZero = regexp.MustCompile(`^(?:nil|""|0|false)$`)

// source returns the text of an expression.
func source(text string, expression ast.Expr) string {
	return text[expression.Pos()-1 : expression.End()-1] // the file is the first of its set
}

// literal returns the text of a string literal, or of several that `+` joins; variables between them are omitted.
func literal(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

var (
	cxxString  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	cxxJoined  = regexp.MustCompile(`"\s*\n\s*"`)
	gatewayOpt = regexp.MustCompile(`(?s)\b(?:add_option|add_flag|option)\("(--[a-z-]+|system)"(.*?)\)`)
)

// readGatewayFlags reads the help texts of the flags that the gateway defines with CLI11.
func readGatewayFlags(text string) ([]Documented, error) {
	var all []Documented
	for _, match := range gatewayOpt.FindAllStringSubmatch(cxxJoined.ReplaceAllString(text, ""), -1) {
		for _, help := range cxxString.FindAllStringSubmatch(match[2], -1) {
			all = append(all, at(match[1], help[1])...)
		}
	}
	return all, nil
}

var (
	keyTable = regexp.MustCompile(`(?s)\nconstexpr auto k(\w+) = std::to_array<Key>\(\{(.*?)\n\}\);`)
	required = regexp.MustCompile(`\bkRequired\b`)
	keyRow   = regexp.MustCompile(`\n    (?:text|texts|number|numbers|size|duration|list|on_off|choice|section)\(`)
)

// readKeys reads the rows of the gateway's table of configuration keys: each has a default and a meaning. The program computes a
// default in parentheses.
func readKeys(text string) ([]Documented, error) {
	var all []Documented
	for _, table := range keyTable.FindAllStringSubmatch(cxxJoined.ReplaceAllString(text, ""), -1) {
		for _, row := range keyRow.Split(table[2], -1)[1:] {
			strings := cxxString.FindAllStringSubmatch(row, -1)
			if len(strings) < 2 {
				return nil, fmt.Errorf("a row of k%s has %d strings: %s", table[1], len(strings), row)
			}
			name, fallback, meaning := strings[0][1], strings[len(strings)-2][1], strings[len(strings)-1][1]
			if !required.MatchString(row) && fallback != "" {
				all = append(all, Documented{table[1] + "." + name, "= " + fallback})
			}
			all = append(all, at(table[1]+"."+name, meaning)...)
		}
	}
	return all, nil
}
