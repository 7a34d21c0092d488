package api

import (
	"encoding/base64"
	"strings"

	"sluice.dev/sluice/controlplane/internal/store"
)

// pageToken returns the token of a list that the store does not page. It has the name of the list, and the position at which the
// next page begins.
func pageToken(list, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + " " + position))
}

// pagePosition returns the position in a page token; empty without a token. Errors: store.ErrPageToken.
func pagePosition(list, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", store.ErrPageToken
	}
	position, ours := strings.CutPrefix(string(text), list+" ")
	if !ours || position == "" {
		return "", store.ErrPageToken
	}
	return position, nil
}
