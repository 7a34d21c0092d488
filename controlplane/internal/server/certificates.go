package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/controlplane/internal/api"
)

const (
	// expiresSoon is the remaining lifetime from which on the control plane reports a certificate. cert-manager and the operator
	// renew certificates 120 days before their end, so a report means that renewal does not work.
	expiresSoon = 30 * 24 * time.Hour
	// maxCertificates bounds the callers whose certificates are remembered, and maxHolder the length of a name in bytes.
	maxCertificates = 4096
	maxHolder       = 253
	// forgetAfter is the time for which a caller's certificate is remembered after its last call, so that the alarm about a
	// deleted gateway ends.
	forgetAfter = 7 * 24 * time.Hour
	// reportAgain is the interval at which an event is repeated, and at which a gateway's stream is closed so that it uses a
	// renewed certificate.
	reportAgain = 24 * time.Hour
	// certificateCheck is the interval at which this process's certificates are read, and all are compared with the clock.
	certificateCheck = time.Hour
)

// holder identifies a certificate by role and common name, so that a renewed certificate replaces the old one.
type holder struct{ role, name string }

// seenCertificate has the expiry of a holder's certificate, and the times when it was last used and reported.
type seenCertificate struct {
	end, used, reported time.Time
}

// Certificates remembers the expiry of the certificates of callers and of this process. Its methods are safe for concurrent use.
// Each replica remembers only its own callers; Prometheus reads every replica.
type Certificates struct {
	own    []string
	log    *slog.Logger
	report func(role Role, name, message string)
	now    func() time.Time
	gauge  *prometheus.GaugeVec

	mutex sync.Mutex
	seen  map[holder]*seenCertificate
}

// NewCertificates returns it. own are PEM files of this process: its certificates and CAs; empty names are ignored. report is
// called once a day for each certificate of a caller that expires within 30 days; it must not block.
func NewCertificates(own []string, log *slog.Logger, report func(role Role, name, message string),
	registry prometheus.Registerer) *Certificates {
	c := &Certificates{log: log, report: report, now: time.Now, seen: map[holder]*seenCertificate{},
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_controlplane_certificate_expiry_timestamp_seconds",
			Help: "When a certificate ends (Unix time), by role and holder: of callers, as of their last connection, and of this process.",
		}, []string{"role", "holder"})}
	for _, file := range own {
		if file != "" && !slices.Contains(c.own, file) {
			c.own = append(c.own, file)
		}
	}
	registry.MustRegister(c.gauge)
	c.readOwn()
	return c
}

// Run reads this process's certificates again, and reports, until the context ends.
func (c *Certificates) Run(ctx context.Context) error {
	ticker := time.NewTicker(certificateCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			c.readOwn()
			c.check()
		}
	}
}

func (c *Certificates) readOwn() {
	for _, file := range c.own {
		rest, err := os.ReadFile(file)
		if err != nil {
			continue // the TLS configuration also reads it, and reports the problem
		}
		var block *pem.Block
		for block, rest = pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
				role := cmp.Or(roleIn(certificate), "controlplane")
				if certificate.IsCA {
					role = "ca"
				}
				c.record(holder{role, certificate.Subject.CommonName}, certificate.NotAfter)
			}
		}
	}
}

// record remembers a holder's certificate, and reports it if that is due.
func (c *Certificates) record(h holder, end time.Time) {
	// Prometheus panics on a label value that is not UTF-8. The name in a certificate need not be UTF-8, and a cut can split a
	// character.
	h.name = strings.ToValidUTF8(h.name[:min(len(h.name), maxHolder)], "")
	now := c.now()
	c.mutex.Lock()
	known := c.seen[h]
	if known == nil {
		if len(c.seen) >= maxCertificates {
			c.forgetOldest()
		}
		known = &seenCertificate{}
		c.seen[h] = known
	}
	known.used = now
	if !known.end.Equal(end) {
		known.end, known.reported = end, time.Time{}
		c.gauge.WithLabelValues(h.role, h.name).Set(float64(end.Unix()))
	}
	due := known.due(now)
	c.mutex.Unlock()
	if due {
		c.reportEnd(h, end, now)
	}
}

// due reports whether a certificate must be reported now, and records that it was.
func (s *seenCertificate) due(now time.Time) bool {
	if s.end.Sub(now) > expiresSoon || !s.reported.IsZero() && now.Sub(s.reported) < reportAgain {
		return false
	}
	s.reported = now
	return true
}

func (c *Certificates) reportEnd(h holder, end, now time.Time) {
	left := int(end.Sub(now).Hours() / 24)
	message := fmt.Sprintf("its certificate ends in %d days, on ", left) + end.UTC().Format(time.DateOnly) +
		": renew it, or repair what renews it"
	c.log.Warn("a certificate ends soon", "role", h.role, "holder", h.name, "end", end.UTC(), "daysLeft", left)
	if c.report != nil {
		c.report(Role(h.role), h.name, message)
	}
}

// forgetOldest removes the certificate that was unused for the longest time.
func (c *Certificates) forgetOldest() {
	var oldest holder
	var used time.Time
	for h, known := range c.seen {
		if used.IsZero() || known.used.Before(used) {
			oldest, used = h, known.used
		}
	}
	c.forget(oldest)
}

func (c *Certificates) forget(h holder) {
	delete(c.seen, h)
	c.gauge.DeleteLabelValues(h.role, h.name)
}

// check reports certificates that are due, and forgets certificates that were not used recently.
func (c *Certificates) check() {
	now := c.now()
	due := map[holder]time.Time{}
	c.mutex.Lock()
	for h, known := range c.seen {
		switch {
		case now.Sub(known.used) > forgetAfter:
			c.forget(h)
		case known.due(now):
			due[h] = known.end
		}
	}
	c.mutex.Unlock()
	for h, end := range due {
		c.reportEnd(h, end, now)
	}
}

// List returns all certificates, sorted by expiry.
func (c *Certificates) List() []api.Certificate {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := make([]api.Certificate, 0, len(c.seen))
	for h, known := range c.seen {
		all = append(all, api.Certificate{Role: h.role, Holder: h.name, End: known.end})
	}
	slices.SortFunc(all, func(a, b api.Certificate) int {
		return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Holder, b.Holder))
	})
	return all
}
