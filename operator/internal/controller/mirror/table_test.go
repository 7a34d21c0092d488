package mirror

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The root of the sources, and the source folders of conditions' reasons: the operator's own, and those of the control plane's
// objects.
const sources = "../../../.."

var reasoning = []string{"operator/internal/controller/*", "controlplane/internal/decide"}

// reasonAt has the argument of each function that is the reason; withReason are types that have a reason.
var (
	reasonAt   = map[string]int{"Problemf": 0, "condition": 2, "Condition": 3, "progress": 1}
	withReason = []string{"verdict", "progress", "Problem", "Refusal", "MoveRefusal"}
	word       = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]+)*$`)
)

// causes are the reasons of changes of owner, which are no reasons of conditions.
var causes = []string{"Drain", "Rebalance"}

// passedOn are the names of states (model.OwnershipState), and the reason of an event.
var passedOn = []string{"Acquiring", "Opening", "Moving", "RolledBack"}

// words is the folder of constants for reasons in other folders.
const words = "controlplane/internal/model"

// parse reads the source files of a folder, and its constants; `others` are constants of another folder, under their names here.
func parse(t *testing.T, folder string, others map[string]string) (files []*ast.File, constants map[string]string) {
	t.Helper()
	constants = map[string]string{}
	paths, err := filepath.Glob(filepath.Join(sources, folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources in %s: %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					constants[name.Name] = cmp.Or(literal(spec.Values[i]), others[last(spec.Values[i])])
				}
			}
			return true
		})
	}
	return files, constants
}

// reasons adds the reasons that conditions of resources may have, from the source files of a folder.
func reasons(t *testing.T, folder string, found map[string]bool) {
	t.Helper()
	_, others := parse(t, words, nil)
	files, constants := parse(t, folder, others)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, reason := range reasonIn(n) {
				ast.Inspect(reason, func(n ast.Node) bool {
					text := ""
					switch n := n.(type) {
					case *ast.BasicLit:
						text = literal(n)
					case *ast.Ident:
						text = constants[n.Name]
						if text == "" && strings.HasPrefix(n.Name, "Reason") { // model.Reason…
							text = others[n.Name]
						}
					}
					if word.MatchString(text) {
						found[text] = true
					}
					return true
				})
			}
			return true
		})
	}
}

func literal(e ast.Node) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

// reasonIn returns the expressions that a piece of source uses as reasons.
func reasonIn(n ast.Node) (found []ast.Expr) {
	switch n := n.(type) {
	case *ast.CallExpr:
		if at, ok := reasonAt[last(n.Fun)]; ok && at < len(n.Args) {
			return n.Args[at : at+1]
		}
	case *ast.CompositeLit:
		if !slices.Contains(withReason, last(n.Type)) {
			return nil
		}
		for _, element := range n.Elts {
			if pair, keyed := element.(*ast.KeyValueExpr); !keyed {
				found = append(found, element)
			} else if key := last(pair.Key); strings.EqualFold(key, "reason") || key == "Progressing" { // a Problem has two
				found = append(found, pair.Value)
			}
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) && slices.Contains([]string{"reason", "Reason"}, last(to)) {
				found = append(found, n.Rhs[i])
			}
		}
	}
	return found
}

// last returns the last name of an expression: Problemf for mirror.Problemf.
func last(e ast.Node) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func TestTheTableOfConditionsNamesEveryReasonThatThereIsAndNoOther(t *testing.T) {
	found := map[string]bool{}
	for _, reason := range passedOn {
		found[reason] = true
	}
	for _, pattern := range reasoning {
		folders, err := filepath.Glob(filepath.Join(sources, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			relative, _ := filepath.Rel(sources, folder)
			reasons(t, relative, found)
		}
	}
	for _, cause := range causes {
		delete(found, cause)
	}
	text, err := os.ReadFile(filepath.Join(sources, "operator/CONDITIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 7 && word.MatchString(strings.Trim(cells[3], " `")) {
			listed[strings.Trim(cells[3], " `")] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		if !listed[reason] {
			t.Errorf("%s: the sources give this reason, and operator/CONDITIONS.md does not tell of it", reason)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(listed)) {
		if !found[reason] {
			t.Errorf("%s: operator/CONDITIONS.md tells of this reason, and nothing gives it", reason)
		}
	}
}
