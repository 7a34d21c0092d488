package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// refusing fails each write.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("the reader is gone") }

func TestACompleteBackupIsRecordedWithItsTimeAndAnIncompleteOneIsNot(t *testing.T) {
	f := open(t)
	known, err := f.Backups(t.Context())
	if err != nil || !known.Last.IsZero() || !known.Since.Equal(f.clock.now()) {
		t.Fatalf("%+v, %v", known, err)
	}
	f.clock.advance(time.Hour)
	if err := f.Backup(t.Context(), refusing{}); err == nil {
		t.Error("a backup that was not received is complete")
	}
	if known, err = f.Backups(t.Context()); err != nil || !known.Last.IsZero() {
		t.Errorf("%+v, %v", known, err)
	}
	var copied bytes.Buffer
	if err := f.Backup(t.Context(), &copied); err != nil || copied.Len() == 0 {
		t.Fatal(err)
	}
	if known, err = f.Backups(t.Context()); err != nil || !known.Last.Equal(f.clock.now()) {
		t.Errorf("%+v, %v", known, err)
	}
}
