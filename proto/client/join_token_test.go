package client_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/proto/client"
)

func TestTheTextOfAJoinTokenIsReadBackWhole(t *testing.T) {
	token := client.NewJoinToken([]byte("certificate"))
	read, err := client.ParseJoinToken(token.Text() + "\n")
	if err != nil || read != token {
		t.Errorf("got %+v (%v), want %+v", read, err, token)
	}
	if other := client.NewJoinToken([]byte("certificate")); other.ID == token.ID || other.Secret == token.Secret {
		t.Error("two tokens share their id or their secret")
	}
}

func TestADamagedJoinTokenIsRefusedWithoutItsSecret(t *testing.T) {
	token := client.NewJoinToken(nil)
	text := token.Text()
	for name, damaged := range map[string]string{
		"empty": "", "cut": text[:len(text)-2], "without a part": strings.TrimPrefix(text, "sluice1."),
		"short secret": strings.Replace(text, token.Secret, token.Secret[:30], 1), "upper case": strings.ToUpper(text),
	} {
		if _, err := client.ParseJoinToken(damaged); err == nil {
			t.Errorf("%s: it is accepted", name)
		} else if strings.Contains(err.Error(), token.Secret[:30]) {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
	}
}
