package model

import "testing"

func TestAnEmptyChapNameIsTheInitiatorsAndAnEmptyMutualNameTheTargets(t *testing.T) {
	const initiator, iqn = "iqn.2026-11.example:web", "iqn.2026-11.example:disk"
	secret := NewSecret("a secret of 16 b")
	for name, c := range map[string]struct {
		spec         HostSpec
		chap, mutual string
	}{
		"no credentials": {HostSpec{}, "", ""},
		"no names":       {HostSpec{Chap: &ChapCredentials{Password: secret}, MutualChap: &ChapCredentials{Password: secret}}, initiator, iqn},
		"names": {HostSpec{Chap: &ChapCredentials{Username: "web", Password: secret},
			MutualChap: &ChapCredentials{Username: "store", Password: secret}}, "web", "store"},
	} {
		if got := c.spec.ChapUsername(initiator); got != c.chap {
			t.Errorf("%s: CHAP name %q, want %q", name, got, c.chap)
		}
		if got := c.spec.MutualChapUsername(iqn); got != c.mutual {
			t.Errorf("%s: mutual CHAP name %q, want %q", name, got, c.mutual)
		}
	}
}
