// Package manifests checks the operator's manifests: that every kustomization builds, and that the bundle is valid and current.
package manifests
