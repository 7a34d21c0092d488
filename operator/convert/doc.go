// Package convert turns custom resources into objects of the control plane's API, and back. The operator and sluicectl use it, so a file
// means the same to both. Documents (document.go) are resources as JSON or YAML has them; `<Kind>Spec` makes the specification of the
// API's object, `Show<Kind>` copies its status into the resource.
//
// The API validates what comes out: these functions refuse only what the API could not see, such as an unknown word.
package convert
