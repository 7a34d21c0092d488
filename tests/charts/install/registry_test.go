package install_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// layouts is a registry that serves a directory of OCI image layouts as it is: the pull part of the OCI Distribution Specification
// 1.1 (§4.1.1, end-1 to end-3).
type layouts string

func (l layouts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	if path == "" {
		return // end-1: the registry has the API
	}
	name, reference, manifest := strings.Cut(path, "/manifests/")
	if !manifest {
		name, reference, _ = strings.Cut(path, "/blobs/")
		l.serveBlob(w, r, name, reference, "application/octet-stream")
		return
	}
	text, err := os.ReadFile(filepath.Join(string(l), name, "index.json"))
	var index struct {
		Manifests []struct {
			MediaType, Digest string
			Annotations       map[string]string
		}
	}
	if err != nil || json.Unmarshal(text, &index) != nil {
		http.NotFound(w, r)
		return
	}
	for _, found := range index.Manifests {
		if reference == found.Digest || reference == found.Annotations["org.opencontainers.image.ref.name"] {
			w.Header().Set("Docker-Content-Digest", found.Digest)
			l.serveBlob(w, r, name, found.Digest, found.MediaType)
			return
		}
	}
	http.NotFound(w, r)
}

func (l layouts) serveBlob(w http.ResponseWriter, r *http.Request, name, digest, mediaType string) {
	w.Header().Set("Content-Type", mediaType)
	http.ServeFile(w, r, filepath.Join(string(l), name, "blobs", strings.Replace(digest, ":", "/", 1)))
}
