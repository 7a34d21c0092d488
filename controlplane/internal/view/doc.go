// Package view copies the store's objects into memory and follows the store's watches. The copy may be out of date when a
// decision that was based on it is stored. Therefore every change is still a compare-and-swap in the store.
package view
