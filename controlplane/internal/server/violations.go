package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
)

// patterns says in words what each pattern of the .proto files requires.
var patterns = map[string]string{
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`: "must consist of lower-case letters, digits, '-' and '.', and begin " +
		"and end with a letter or a digit, as in `db-1`",
	`^[a-z0-9]([a-z0-9._@-]*[a-z0-9])?$`: "must consist of lower-case letters, digits, '.', '_', '-' and '@', and begin and end with a " +
		"letter or a digit, as in `ada`",
	`^(/.*)?$`: "must be an absolute path",
	`^/dev/.+`: "must be the path of a device below /dev",
}

// fieldOf returns the path of a violated field as users write it in YAML, in lowerCamelCase and from the object on: `spec.sizeBytes`.
func fieldOf(violation *protovalidate.Violation) string {
	path := proto.CloneOf(violation.Proto.GetField())
	for _, element := range path.GetElements() {
		element.FieldName = proto.String(camelCase(element.GetFieldName()))
	}
	// A request to create or update an object contains it in a field of its kind's name.
	if all := path.GetElements(); len(all) > 1 && (all[1].GetFieldName() == "spec" || all[1].GetFieldName() == "meta") {
		path.Elements = all[1:]
	}
	return protovalidate.FieldPathString(path)
}

// camelCase returns the name of a field in JSON and YAML.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

var number = regexp.MustCompile(`\d+`)

// describe returns the description of a violation for users: without a regular expression, and with the units of sizes.
func describe(violation *protovalidate.Violation) string {
	text := violation.Proto.GetMessage()
	if rule := violation.RuleDescriptor; rule != nil && rule.Name() == "pattern" {
		if words, known := patterns[violation.RuleValue.String()]; known {
			return words
		}
	}
	if field := violation.FieldDescriptor; field != nil && strings.Contains(string(field.Name()), "bytes") {
		text = number.ReplaceAllStringFunc(text, inBytes)
	}
	return text
}

var (
	units        = []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	decimalUnits = []string{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"}
)

// inBytes adds the largest unit of which a number of bytes is a multiple: `1 MiB` for 1048576, `1 TB` for 10^12.
func inBytes(digits string) string {
	count, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return digits + " bytes"
	}
	binary, unit := inUnit(count, 1024)
	if decimal, power := inUnit(count, 1000); decimal < binary {
		return fmt.Sprintf("%d %s", decimal, decimalUnits[power])
	}
	return fmt.Sprintf("%d %s", binary, units[unit])
}

// inUnit divides a count by a base as long as no remainder is left, and returns how often.
func inUnit(count, base uint64) (rest uint64, power int) {
	for count > 0 && count%base == 0 && power < len(units)-1 {
		count, power = count/base, power+1
	}
	return count, power
}
