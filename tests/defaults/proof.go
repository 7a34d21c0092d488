package defaults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// proof is an entry of the table about a documented default.
type proof struct {
	// where and text are as in Documented.
	where, text string
	// tests prove the default where it takes effect. Each is PACKAGE.TestName, `gateway Suite.Name`, or `FILE: text`, a check
	// with that text in a script of a tier.
	tests []string
	// none is the reason why the clause documents no default, if it documents none.
	none string
}

// by returns an entry for a default that tests prove.
func by(where, text string, tests ...string) proof {
	return proof{where: where, text: text, tests: tests}
}

// not returns an entry for a clause that documents no default.
func not(where, text, why string) proof { return proof{where: where, text: text, none: why} }

// valueProofs prove the values that a source has in a separate field (`= VALUE`), and markers of custom resources, all at once.
var valueProofs = []struct {
	file, text *regexp.Regexp
	tests      []string
}{
	{regexp.MustCompile(`^operator/api/`), regexp.MustCompile(`^\+kubebuilder:default=`),
		[]string{"operator/test.TestOmittedFieldsReceiveTheirDefaults", "tests/defaults.TestEachMarkerIsInTheDefinitionsAndProvenAtTheAPIServer"}},
	{regexp.MustCompile(`^controlplane/cmd/sluicectl/`), regexp.MustCompile(`^= `),
		[]string{"controlplane/cmd/sluicectl.TestEachFlagHasTheDefaultThatItsHelpShows", "controlplane/cmd/sluicectl.TestFlagsThatAreLeftOutMakeWhatTheirHelpSays"}},
	{regexp.MustCompile(`^controlplane/cmd/sluice-controlplane/`), regexp.MustCompile(`^= `),
		[]string{"controlplane/cmd/sluice-controlplane.TestEachFlagHasTheDefaultThatItsHelpShows"}},
	{regexp.MustCompile(`^operator/cmd/sluice-operator/`), regexp.MustCompile(`^= `),
		[]string{"operator/cmd/sluice-operator.TestEachFlagHasTheDefaultThatItsHelpShows"}},
	{regexp.MustCompile(`^operator/cmd/sluice-csi/`), regexp.MustCompile(`^= `),
		[]string{"operator/cmd/sluice-csi.TestEachFlagHasTheDefaultThatItsHelpShows"}},
	{regexp.MustCompile(`key_table\.cc (?:Top|Log|Iscsi|Connections)\.`), regexp.MustCompile(`^= [^(]`),
		[]string{"gateway Parse.ExplicitDefaultsEqualOmittedDefaults"}},
	{regexp.MustCompile(`key_table\.cc Luns\.`), regexp.MustCompile(`^= [^(]`), []string{"gateway Parse.DefaultsOfALunAreAsDocumented"}},
	{regexp.MustCompile(`key_table\.cc Listen\.`), regexp.MustCompile(`^= [^(]`), []string{"gateway Defaults.OfAListenerMatchTheKeyTable"}},
	{regexp.MustCompile(`key_table\.cc Hosts\.`), regexp.MustCompile(`^= [^(]`), []string{"gateway Defaults.OfAHostMatchTheKeyTable"}},
	{regexp.MustCompile(`key_table\.cc Rbd\.`), regexp.MustCompile(`^= [^(]`), []string{"gateway Defaults.OfACephImageMatchTheKeyTable"}},
	{regexp.MustCompile(`key_table\.cc ControlPlane\.`), regexp.MustCompile(`^= [^(]`),
		[]string{"gateway Defaults.OfTheControlPlaneMatchTheKeyTable"}},
	{regexp.MustCompile(`values\.schema\.json `), regexp.MustCompile(`^= `),
		[]string{"tests/charts/run: every value changes what is rendered"}},
}

// proven returns the tests of a value or marker that is proven together with the others of its source; none: the table must have
// it.
func proven(d Documented) []string {
	for _, all := range valueProofs {
		if all.file.MatchString(d.Where) && all.text.MatchString(d.Text) {
			return all.tests
		}
	}
	return nil
}

// Tests has the tests of the tree.
type Tests struct {
	root string
	// gateway are the tests of GoogleTest, as Suite.Name.
	gateway map[string]bool
	// files caches the contents of files.
	files map[string]string
}

var googleTest = regexp.MustCompile(`(?m)^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)`)

// ReadTests finds the tests of the gateway.
func ReadTests(root string) (*Tests, error) {
	all := &Tests{root, map[string]bool{}, map[string]string{}}
	err := filepath.WalkDir(filepath.Join(root, "gateway/src"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.cc") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range googleTest.FindAllStringSubmatch(string(text), -1) {
			all.gateway[match[1]+"."+match[2]] = true
		}
		return nil
	})
	return all, err
}

// Missing returns why a test that the table names does not exist; empty: it exists.
func (t *Tests) Missing(name string) string {
	if test, ok := strings.CutPrefix(name, "gateway "); ok {
		if !t.gateway[test] {
			return "gateway/src has no test " + test
		}
		return ""
	}
	if file, text, ok := strings.Cut(name, ": "); ok {
		return t.lacks(file, text)
	}
	at := strings.LastIndex(name, ".")
	if at < 0 {
		return "is no name of a test"
	}
	return t.lacks(name[:at]+"/*_test.go", "\nfunc "+name[at+1:]+"(")
}

// lacks searches for a text in the files of a pattern.
func (t *Tests) lacks(pattern, text string) string {
	if _, known := t.files[pattern]; !known {
		files, err := filepath.Glob(filepath.Join(t.root, pattern))
		if err != nil {
			return err.Error()
		}
		var all strings.Builder
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err.Error()
			}
			all.Write(content)
		}
		t.files[pattern] = all.String()
	}
	if !strings.Contains(t.files[pattern], text) {
		return fmt.Sprintf("%s has no %q", pattern, strings.TrimSpace(text))
	}
	return ""
}
