package certs

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// subjectNames are the subject alternative names of a certificate (RFC 5280 §4.2.1.6).
type subjectNames struct {
	dns  []string
	ip   []net.IP
	uri  []*url.URL
	mail []string
}

// subjectNames returns the names of the present certificate of the leaf's file, without the removed ones, and the leaf's own.
func (a *Authority) subjectNames(leaf Leaf) (subjectNames, error) {
	var names subjectNames
	present, err := a.present(leaf.File)
	if err != nil {
		return names, err
	}
	if present != nil {
		names = subjectNames{present.DNSNames, present.IPAddresses, present.URIs, present.EmailAddresses}
	}
	for _, host := range leaf.RemoveHosts {
		if slices.ContainsFunc(leaf.Hosts, func(added string) bool { return sameHost(added, host) }) {
			return names, fmt.Errorf("certificates: host %q is to be added and to be removed: name it once", host)
		}
		if !names.remove(host) {
			return names, fmt.Errorf("certificates: host %q cannot be removed: %s has the names %s", host,
				filepath.Join(a.directory, leaf.File+".crt"), strings.Join(names.hosts(), ", "))
		}
	}
	for _, host := range leaf.Hosts {
		names.add(host)
	}
	return names, nil
}

// Issued reports whether there is a certificate of this file.
func (a *Authority) Issued(file string) bool {
	_, err := os.Stat(filepath.Join(a.directory, file+".crt"))
	return err == nil
}

// present reads the certificate of a file; nil: there is none.
func (a *Authority) present(file string) (*x509.Certificate, error) {
	path := filepath.Join(a.directory, file+".crt")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	const remedy = "; a new certificate would lose its names: restore the file, or remove it and repeat every --host"
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("certificates: %s is not PEM%s", path, remedy)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificates: %s: %w%s", path, err, remedy)
	}
	return certificate, nil
}

// Hosts returns the DNS names and IP addresses of a certificate.
func Hosts(certificate *x509.Certificate) []string {
	names := subjectNames{dns: certificate.DNSNames, ip: certificate.IPAddresses}
	return names.hosts()
}

func (n *subjectNames) hosts() []string {
	all := slices.Clone(n.dns)
	for _, ip := range n.ip {
		all = append(all, ip.String())
	}
	return all
}

func (n *subjectNames) add(host string) {
	switch ip := net.ParseIP(host); {
	case slices.ContainsFunc(n.hosts(), func(known string) bool { return sameHost(known, host) }):
	case ip != nil:
		n.ip = append(n.ip, ip)
	default:
		n.dns = append(n.dns, strings.ToLower(host))
	}
}

// remove reports whether the host was in the list.
func (n *subjectNames) remove(host string) bool {
	before := len(n.dns) + len(n.ip)
	n.dns = slices.DeleteFunc(slices.Clone(n.dns), func(known string) bool { return sameHost(known, host) })
	n.ip = slices.DeleteFunc(slices.Clone(n.ip), func(known net.IP) bool { return sameHost(known.String(), host) })
	return len(n.dns)+len(n.ip) < before
}

// sameHost compares addresses in binary form, and names without regard to case (RFC 4343).
func sameHost(host, other string) bool {
	a, errA := netip.ParseAddr(host)
	b, errB := netip.ParseAddr(other)
	if errA == nil && errB == nil {
		return a.Unmap() == b.Unmap()
	}
	return strings.EqualFold(host, other)
}
