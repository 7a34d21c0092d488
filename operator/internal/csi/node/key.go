package node

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"sluice.dev/sluice/operator/internal/csi/attachment"
)

// keyFile in the state directory holds the node's private key, readable by root only. It never leaves the node.
const keyFile = "chap.key"

// key returns the node's private key; nil: it has none yet.
func (s *store) key() (*ecdh.PrivateKey, error) {
	path := filepath.Join(s.directory, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := attachment.ParsePrivateKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; or drain the node, then remove the file and restart the plugin: it makes another key", path, err)
	}
	return key, nil
}

// makeKey makes the node's key and stores it durably.
func (s *store) makeKey() (*ecdh.PrivateKey, error) {
	text := attachment.NewPrivateKey()
	if err := s.write(filepath.Join(s.directory, keyFile), []byte(text)); err != nil {
		return nil, err
	}
	return attachment.ParsePrivateKey(text)
}

// announced returns the node's public key for its id; empty: it announces none yet. An earlier plugin without keys may have
// staged volumes under an id without key, and controllers of that release withdraw a volume from a node whose id has changed.
// Therefore the node announces its key only when no volume is staged, and keeps announcing it from then on.
func (s *Service) announced() (string, error) {
	s.keys.Lock()
	defer s.keys.Unlock()
	key, err := s.state.key()
	if err != nil {
		return "", err
	}
	if key == nil {
		if staged, err := s.state.all(); err != nil || len(staged) > 0 {
			return "", nil // an unreadable record may belong to a staged volume
		}
		if key, err = s.state.makeKey(); err != nil {
			return "", err
		}
	}
	return attachment.EncodePublicKey(key.PublicKey()), nil
}

// identify returns the node's id as it is announced. If the names leave no room for a key, it has none: volumes of a class with a
// CHAP Secret need none.
func (s *Service) identify(initiator string) (string, error) {
	key, err := s.announced()
	if err != nil {
		return "", err
	}
	id, err := attachment.Node{Name: s.name, Initiator: initiator, Key: key}.ID()
	if err == nil || key == "" {
		return id, err
	}
	slog.Warn("the node announces no CHAP key", "problem", err)
	return attachment.Node{Name: s.name, Initiator: initiator}.ID()
}

// credentials returns the credentials of a stage: those of the class's Secret, or those that the node derives with the driver's
// key.
func (s *Service) credentials(a attachment.Attachment, given attachment.CHAP) (attachment.CHAP, error) {
	if given.Own != nil || a.DriverKey == "" {
		return given, nil
	}
	key, err := s.state.key()
	if err != nil {
		return attachment.CHAP{}, err
	}
	if key == nil {
		return attachment.CHAP{}, fmt.Errorf("the volume is published to a node with a CHAP key, and %s is missing: detach the node's volumes, "+
			"and restart the plugin", filepath.Join(s.state.directory, keyFile))
	}
	initiator, err := s.initiator()
	if err != nil {
		return attachment.CHAP{}, err
	}
	return attachment.OwnCHAP(key, a.DriverKey, s.name, initiator)
}

// Registered answers whether kubelet knows the id that the node would announce now. The registrar's liveness probe calls it,
// because a restarted registrar makes kubelet ask for the id again.
func (s *Service) Registered(w http.ResponseWriter, _ *http.Request) {
	s.keys.Lock()
	announced := s.announcedID
	s.keys.Unlock()
	if announced == "" {
		return // kubelet has not asked yet
	}
	initiator, err := s.initiator()
	if err != nil {
		return // Probe reports it
	}
	if id, err := s.identify(initiator); err == nil && id != announced {
		http.Error(w, "the node's id has changed since kubelet asked for it", http.StatusServiceUnavailable)
	}
}
