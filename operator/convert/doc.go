// Package convert converts custom resources to objects of the control plane's API, and back. The operator and sluicectl use it,
// so a file has the same meaning in both. Documents (document.go) are resources as JSON or YAML; `<Kind>Spec` returns the
// specification of the API's object, and `Show<Kind>` copies its status to the resource.
//
// The API validates the result: these functions refuse only errors that the API could not detect, such as an unknown enumeration
// value.
package convert
