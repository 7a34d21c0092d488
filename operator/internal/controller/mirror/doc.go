// Package mirror keeps a custom resource and the object that represents it in the control plane equal. It is the part of every
// controller that is the same for all kinds; Managed is the part that differs between kinds. Read reconcile.go first: it has the
// phases in their order. Then put.go (create, update, adopt), remove.go (delete), report.go (status and Events) and setup.go
// (which changes cause a resource to be reconciled).
package mirror
