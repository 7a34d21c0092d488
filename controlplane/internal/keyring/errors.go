package keyring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WrongKeyError: the key in the key file differs from the key of the same id that encrypted the secrets of the store.
type WrongKeyError struct {
	// Key is the id. What is an object that the key does not decrypt, such as `Host web`.
	Key, What string
}

func (e *WrongKeyError) Error() string {
	return fmt.Sprintf("the key file's key %q is not the one that encrypted the secrets of this store: it does not decrypt %s. Either the key "+
		"file is another system's, or --etcd-endpoints and --cluster name another system: give this replica the key file of the others", e.Key, e.What)
}

// maxSealedNamed bounds the objects that MissingKeysError names for each key.
const maxSealedNamed = 5

// MissingKeysError: the key file lacks keys that encrypted secrets of the store.
type MissingKeysError struct {
	// Sealed lists the objects, such as `Host web`, by the id of the key.
	Sealed map[string][]string
}

func (e *MissingKeysError) Error() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(e.Sealed)) {
		objects := e.Sealed[id]
		named := strings.Join(objects[:min(len(objects), maxSealedNamed)], ", ")
		if more := len(objects) - maxSealedNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, fmt.Sprintf("%s encrypted with key %q", named, id))
	}
	return "the key file lacks keys that secrets in the store are encrypted with: " + strings.Join(all, "; ") +
		": " + putKeyBack + ". Where the file is another system's, give this replica the key file of the others"
}

// putKeyBack is the remedy for a missing key.
const putKeyBack = "put its line back into the key file, behind the others; it can go once nothing is encrypted with it any more " +
	"(`sluice-controlplane key --help` tells how)"
