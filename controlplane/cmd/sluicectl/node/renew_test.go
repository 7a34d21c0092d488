package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const renewals = "/root/sluice-certs"

// renewing is a server of the system with a certificate of each kind, valid for 90 days from `now` on.
type renewing struct {
	*fakeServer
	now   time.Time
	asked []string
	// down is the address of a control plane that does not answer.
	down string
}

func newRenewing(t *testing.T) *renewing {
	t.Helper()
	r := &renewing{fakeServer: newFakeServer(t), now: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)}
	plan := &Plan{Name: "a", Address: "192.0.2.1", Fabrics: map[string]string{}, Member: true, ControlPlanes: []string{"192.0.2.2:7460"}}
	if _, err := r.writeRecord(plan); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway-a-1", "gateway-a-2", "server"} {
		r.certificate(filepath.Join(tlsDirectory, name), name, ownerService)
	}
	r.certificate(filepath.Join(renewals, adminFile), "admin", ownerAdministrator)
	r.file(filepath.Join(renewals, "server.crt"), r.text(filepath.Join(tlsDirectory, "server.crt")))
	return r
}

// certificate makes FILE.key and FILE.crt.
func (r *renewing) certificate(file, name string, of owner) {
	r.t.Helper()
	if _, err := r.makeKey(file+".key", of); err != nil {
		r.t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(r.text(file + ".key")))
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		r.t.Fatal(err)
	}
	r.file(file+".crt", r.signed(name, key))
}

// signed returns a certificate (PEM) of a key.
func (r *renewing) signed(name string, key *ecdsa.PrivateKey) string {
	r.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: r.now, NotAfter: r.now.AddDate(0, 0, 90)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

func (r *renewing) sign(_ context.Context, access Access, request string) (string, error) {
	if access.Server == r.down {
		return "", errors.New("no answer")
	}
	block, _ := pem.Decode([]byte(request))
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	r.asked = append(r.asked, access.Server+" "+filepath.Base(access.Certificate)+" "+parsed.Subject.CommonName)
	return "renewed " + parsed.Subject.CommonName, nil
}

func (r *renewing) renew(all bool) (bool, error) {
	work := &Renew{System: r.System, Certificates: renewals, All: all, Now: func() time.Time { return r.now }, Sign: r.sign}
	return work.Run(context.Background(), io.Discard)
}

func TestCertificatesAreRenewedInTheLastThirdOfTheirTime(t *testing.T) {
	r := newRenewing(t)
	r.now = r.now.AddDate(0, 0, 59)
	if changed, err := r.renew(false); changed || err != nil {
		t.Fatalf("with 31 of 90 days left: %v, %v", changed, err)
	}
	key := r.text(filepath.Join(tlsDirectory, "server.key"))
	r.now = r.now.AddDate(0, 0, 1)
	if changed, err := r.renew(false); !changed || err != nil {
		t.Fatalf("with 30 of 90 days left: %v, %v", changed, err)
	}
	want := []string{"192.0.2.1:7460 gateway-a-1.crt gateway-a-1", "192.0.2.1:7460 gateway-a-2.crt gateway-a-2", "192.0.2.1:7460 server.crt server",
		"192.0.2.1:7460 admin.crt admin"}
	if !slices.Equal(r.asked, want) {
		t.Errorf("the control plane was asked for %q", r.asked)
	}
	for _, file := range []string{filepath.Join(tlsDirectory, "server.crt"), filepath.Join(renewals, "server.crt")} {
		if got := r.text(file); got != "renewed server" {
			t.Errorf("%s: %q", file, got)
		}
	}
	if r.text(filepath.Join(tlsDirectory, "server.key")) != key {
		t.Error("the private key was replaced")
	}
}

func TestARenewalAsksAnotherControlPlaneIfOneDoesNotAnswer(t *testing.T) {
	r := newRenewing(t)
	r.down = "192.0.2.1:7460"
	if changed, err := r.renew(true); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if len(r.asked) != 4 || r.asked[0] != "192.0.2.2:7460 gateway-a-1.crt gateway-a-1" {
		t.Errorf("the control planes were asked for %q", r.asked)
	}
}

func TestARenewalNeedsAServerThatWasSetUp(t *testing.T) {
	r := &renewing{fakeServer: newFakeServer(t)}
	if _, err := r.renew(true); !errors.Is(err, errNotSetUp) {
		t.Error(err)
	}
}
