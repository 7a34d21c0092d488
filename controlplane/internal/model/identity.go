package model

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// DeviceIdentity identifies a volume to hosts. It is assigned once and stored (R13).
type DeviceIdentity struct {
	// NAA is the designator of type 3 in hexadecimal digits (SPC-5 §7.7.6.6.4): locally assigned, 60 bits of the uid;
	// or of type 6 (§7.7.6.6.5) where the cluster has an IEEE company id.
	NAA string `json:"naa"`
	// SerialNumber is the unit serial number (SPC-5 §7.7.16), the uid without its hyphens.
	SerialNumber string `json:"serialNumber"`
}

// NewUID returns a random UUID (RFC 9562 §5.4).
func NewUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// IdentityFor derives a volume's identity from its uid. oui is an IEEE company id of 24 bits, or 0. It fails if uid is not a
// UUID.
func IdentityFor(uid string, oui uint32) (DeviceIdentity, error) {
	digits := strings.ReplaceAll(uid, "-", "")
	if raw, err := hex.DecodeString(digits); err != nil || len(raw) != 16 {
		return DeviceIdentity{}, fmt.Errorf("uid %q is not a UUID", uid)
	}
	// Digit 12 is the UUID's version, which is the same in all. Gateways derive the identity in the same way
	// (gateway/src/scsi/identity.cc) and refuse a volume with another one.
	naa := "3" + digits[:12] + digits[13:16]
	if oui != 0 {
		// 24 bits of company, then 36 + 64 bits of our own.
		naa = fmt.Sprintf("6%06x%s", oui&0xffffff, digits[:9]+digits[16:])
	}
	return DeviceIdentity{NAA: naa, SerialNumber: digits}, nil
}
