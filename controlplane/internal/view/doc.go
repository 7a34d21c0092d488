// Package view copies the store's objects into memory and follows the store's watches. A decision that is made from the copy may be
// outdated by the time it is stored, so every change is still a compare-and-swap in the store.
package view
