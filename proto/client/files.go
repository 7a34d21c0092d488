package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Files names the files in PEM that one end of a connection with mutual TLS needs. All three are required.
type Files struct {
	// CA holds the certificates of the authorities that may have signed the other end's certificate.
	CA string
	// Certificate holds this end's certificate, first, and the intermediate certificates; Key the private key.
	Certificate, Key string
}

// Loaded is the content of Files. It does not change; a Reloader returns another one when the content of a file has changed.
type Loaded struct {
	Certificate tls.Certificate
	Authorities *x509.CertPool
	text        [3][]byte
}

// AuthorityPEM returns the text of the file CA.
func (l *Loaded) AuthorityPEM() []byte { return l.text[0] }

// Reloader reads Files again when they change, so that a renewed certificate or CA needs no restart.
type Reloader struct {
	files Files
	keep  time.Duration
	now   func() time.Time
	mutex sync.Mutex
	last  *Loaded
	at    time.Time
}

// NewReloader reads the files. For the time `keep` Current returns what was read without access to the files; 0: each call reads them. A
// server sets it, because its clients decide how often it is called. Errors: a file that is not named, cannot be read or holds no PEM; a
// key of another certificate.
func NewReloader(files Files, keep time.Duration) (*Reloader, error) {
	r := &Reloader{files: files, keep: keep, now: time.Now}
	if _, err := r.current(); err != nil {
		return nil, err
	}
	return r, nil
}

// Current returns the present content of the files, and the same pointer while that does not change. If the files cannot be read, or do not
// fit together, as in the middle of a renewal, it returns the last content that did, and reads them again at the next call.
func (r *Reloader) Current() *Loaded {
	loaded, _ := r.current()
	return loaded
}

// current also returns why the files could not be read.
func (r *Reloader) current() (*Loaded, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	if r.last != nil && now.Sub(r.at) < r.keep {
		return r.last, nil
	}
	loaded, err := r.files.load(r.last)
	if err != nil {
		return r.last, err
	}
	r.last, r.at = loaded, now
	return loaded, nil
}

// load reads the files. It returns `last` if their content is the same.
func (f Files) load(last *Loaded) (*Loaded, error) {
	if f.CA == "" || f.Certificate == "" || f.Key == "" {
		return nil, errors.New("TLS needs a CA, a certificate and a key")
	}
	loaded := &Loaded{Authorities: x509.NewCertPool()}
	for i, file := range []struct{ kind, path string }{{"CA", f.CA}, {"certificate", f.Certificate}, {"key", f.Key}} {
		var err error
		if loaded.text[i], err = os.ReadFile(file.path); err != nil {
			return nil, fmt.Errorf("TLS %s: %w", file.kind, err)
		}
	}
	if last != nil && bytes.Equal(loaded.text[0], last.text[0]) && bytes.Equal(loaded.text[1], last.text[1]) &&
		bytes.Equal(loaded.text[2], last.text[2]) {
		return last, nil
	}
	if !loaded.Authorities.AppendCertsFromPEM(loaded.text[0]) {
		return nil, fmt.Errorf("TLS CA %s holds no certificate in PEM", f.CA)
	}
	var err error
	if loaded.Certificate, err = tls.X509KeyPair(loaded.text[1], loaded.text[2]); err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", f.Certificate, f.Key, err)
	}
	return loaded, nil
}
