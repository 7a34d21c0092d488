package client

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestAReloaderReturnsARenewedCertificateAndCA(t *testing.T) {
	files := filesIn(t.TempDir(), "client")
	newAuthority(t).issue(files, "", time.Hour)
	reloader, err := NewReloader(files, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := reloader.Current()
	if reloader.Current() != first {
		t.Error("the content is another one although no file changed")
	}
	newAuthority(t).issue(files, "", time.Hour)
	second := reloader.Current()
	if second == first || second.Authorities.Equal(first.Authorities) || second.Certificate.Leaf.Equal(first.Certificate.Leaf) {
		t.Error("the renewed files are not read")
	}
}

func TestAReloaderKeepsTheLastContentDuringARenewal(t *testing.T) {
	folder := t.TempDir()
	files, other := filesIn(folder, "client"), filesIn(folder, "other")
	newAuthority(t).issue(files, "", time.Hour)
	newAuthority(t).issue(other, "", time.Hour)
	reloader, err := NewReloader(files, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := reloader.Current()
	for _, step := range []struct {
		claim    string
		from, to string
	}{
		{"a certificate without its key", other.Certificate, files.Certificate},
		{"a CA that is empty", os.DevNull, files.CA},
	} {
		replace(t, step.from, step.to)
		if reloader.Current() != first {
			t.Errorf("%s: it is used", step.claim)
		}
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	if reloader.Current() != first {
		t.Error("without a key file the last content is lost")
	}
	replace(t, other.CA, files.CA)
	replace(t, other.Key, files.Key)
	if reloader.Current() == first {
		t.Error("after the renewal the files are not read")
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAReloaderReadsItsFilesOnceInTheTimeThatItKeepsThem(t *testing.T) {
	files := filesIn(t.TempDir(), "client")
	newAuthority(t).issue(files, "", time.Hour)
	reloader, err := NewReloader(files, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	read := time.Now()
	reloader.now, reloader.at = func() time.Time { return read.Add(59 * time.Second) }, read
	first := reloader.Current()
	newAuthority(t).issue(files, "", time.Hour)
	if reloader.Current() != first {
		t.Error("after 59 s the files are read again")
	}
	reloader.now = func() time.Time { return read.Add(time.Minute) }
	if reloader.Current() == first {
		t.Error("after a minute the files are not read again")
	}
}

func TestAReloaderNamesTheFileThatItCannotUse(t *testing.T) {
	folder := t.TempDir()
	good, other := filesIn(folder, "client"), filesIn(folder, "other")
	newAuthority(t).issue(good, "", time.Hour)
	newAuthority(t).issue(other, "", time.Hour)
	for want, files := range map[string]Files{
		"TLS needs a CA, a certificate and a key": {CA: good.CA, Certificate: good.Certificate},
		folder + "/none.crt":                      {CA: folder + "/none.crt", Certificate: good.Certificate, Key: good.Key},
		"TLS CA " + os.DevNull:                    {CA: os.DevNull, Certificate: good.Certificate, Key: good.Key},
		"TLS certificate " + good.Certificate + " with key " + other.Key + ": ": {CA: good.CA, Certificate: good.Certificate, Key: other.Key},
	} {
		if _, err := NewReloader(files, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", files, err, want)
		}
	}
}
