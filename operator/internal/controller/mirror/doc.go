// Package mirror keeps a custom resource and what stands for it in the control plane alike. It is the part of every
// controller that is the same for all kinds; a Kind says what is particular to one. Read reconcile.go first: it is the phases
// in their order. Then put.go (create, update, adopt), remove.go (delete), report.go (status and Events), wake.go (what makes
// a resource be looked at).
package mirror
