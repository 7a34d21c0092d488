// Package model holds the nouns of the control plane, what makes each of them valid, and which
// changes are legal. It imports nothing of ours and nothing that does I/O: no store, no wire format, no
// clock. Everything here can be tested with values alone.
//
// Objects are kept as they are declared here, in JSON (see package store), so a renamed field is a
// migration.
package model
