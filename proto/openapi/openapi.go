// Package openapi has the OpenAPI document of the REST API. `make generate` makes it from the protocols.
package openapi

import _ "embed"

// Document is the document, as YAML.
//
//go:embed openapi.yaml
var Document []byte
