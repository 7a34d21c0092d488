package transcode

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// rule is the google.api.http rule of a method.
type rule struct {
	verb     string
	template string
	// path matches the paths of the template.
	path    *regexp.Regexp
	request protoreflect.MessageDescriptor
}

var variable = regexp.MustCompile(`\\\{[^}]*\\\}`)

// ruleOf returns the rule of a method; false: it has none.
func ruleOf(method protoreflect.MethodDescriptor) (rule, bool) {
	var verb, path string
	found, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	switch pattern := found.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		verb, path = http.MethodGet, pattern.Get
	case *annotations.HttpRule_Post:
		verb, path = http.MethodPost, pattern.Post
	case *annotations.HttpRule_Patch:
		verb, path = http.MethodPatch, pattern.Patch
	case *annotations.HttpRule_Delete:
		verb, path = http.MethodDelete, pattern.Delete
	default:
		return rule{}, false
	}
	// No name has a colon, which begins a verb as in `/v1/volumes/db:move`.
	matched := variable.ReplaceAllLiteralString(regexp.QuoteMeta(path), `[^/:]+`)
	return rule{verb, path, regexp.MustCompile("^" + matched + "$"), method.Input()}, true
}

// check returns the error of a REST request whose path has no rule for its verb, or whose query has a parameter that its message lacks.
// Vanguard answers the first with plain text and the second with the code UNKNOWN.
func (h *handler) check(r *http.Request) (int, *status.Status) {
	var verbs []string
	for _, rule := range h.rules {
		if !rule.path.MatchString(r.URL.Path) {
			continue
		}
		if rule.verb == r.Method {
			return http.StatusBadRequest, checkQuery(rule.request, r)
		}
		verbs = append(verbs, rule.verb)
	}
	if len(verbs) == 0 {
		return 0, nil
	}
	slices.Sort(verbs)
	return http.StatusMethodNotAllowed, status.Newf(codes.Unimplemented, "%s %s: no such method; it has %s", r.Method, r.URL.Path,
		strings.Join(verbs, ", "))
}

func checkQuery(request protoreflect.MessageDescriptor, r *http.Request) *status.Status {
	for name := range r.URL.Query() {
		if !known(request, name) {
			return invalid(name, "no such parameter")
		}
	}
	return nil
}
