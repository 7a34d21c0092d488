package model

import (
	"strings"
	"testing"
)

func TestADesignatorIsOfType3WithoutACompanyIDAndOfType6WithOne(t *testing.T) {
	const uid = "01234567-89ab-4cde-8f01-23456789abcd"
	for oui, want := range map[uint32]string{0: "30123456789abcde", 0x001b21: "6001b21" + "012345678" + "8f0123456789abcd"} {
		identity, err := IdentityFor(uid, oui)
		if err != nil || identity.NAA != want || identity.SerialNumber != strings.ReplaceAll(uid, "-", "") {
			t.Errorf("company id %06x: %+v, want %s (%v)", oui, identity, want, err)
		}
	}
}
