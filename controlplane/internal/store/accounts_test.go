package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/store"
)

func (f *fixture) account(name string) int64 {
	f.t.Helper()
	if _, err := f.CreateAccount(f.t.Context(), store.Account{Name: name, Role: "admin", Hash: "h"}); err != nil {
		f.t.Fatal(err)
	}
	_, version, err := f.Account(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return version
}

func (f *fixture) login(name string, version int64, hash byte) store.Login {
	f.t.Helper()
	login, err := f.AddLogin(f.t.Context(), store.Login{Name: name, Role: "admin", Hash: bytes.Repeat([]byte{hash}, 32)}, version, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	return login
}

func (f *fixture) isLoggedIn(login store.Login) bool {
	f.t.Helper()
	_, found, err := f.FindLogin(f.t.Context(), login.Provider, login.Name, login.Hash)
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

func TestTheNameOfAnAccountIsUnique(t *testing.T) {
	f := open(t)
	f.account("ada")
	var exists *store.AccountExistsError
	if _, err := f.CreateAccount(t.Context(), store.Account{Name: "ada"}); !errors.As(err, &exists) {
		t.Errorf("a second account of the same name: %v", err)
	}
}

func TestChangesOfAnAccountEndItsLoginsAndNoOthers(t *testing.T) {
	f := open(t)
	ada, adam := f.account("ada"), f.account("adam")
	for name, change := range map[string]func() error{
		"update": func() error {
			_, err := f.UpdateAccount(t.Context(), "ada", func(a *store.Account) { a.Role = "read-only" })
			return err
		},
		"delete": func() error { return f.DeleteAccount(t.Context(), "ada") },
	} {
		t.Run(name, func(t *testing.T) {
			f.t = t
			_, ada, _ = f.Account(t.Context(), "ada")
			if ada == 0 {
				ada = f.account("ada")
			}
			its, other := f.login("ada", ada, 1), f.login("adam", adam, 2)
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if f.isLoggedIn(its) || !f.isLoggedIn(other) {
				t.Errorf("its login lives: %v; that of another account: %v", f.isLoggedIn(its), f.isLoggedIn(other))
			}
		})
	}
}

// The password was verified against the former account.
func TestAnAccountThatChangedDuringALoginGivesNoLogin(t *testing.T) {
	f := open(t)
	version := f.account("ada")
	if _, err := f.UpdateAccount(t.Context(), "ada", func(a *store.Account) { a.Hash = "new" }); err != nil {
		t.Fatal(err)
	}
	var none *store.NoAccountError
	if _, err := f.AddLogin(t.Context(), store.Login{Name: "ada", Hash: []byte{1}}, version, time.Hour); !errors.As(err, &none) {
		t.Errorf("a login by the former password: %v", err)
	}
}

func TestALoginEndsAtItsTimeAndByItsEnd(t *testing.T) {
	f := open(t)
	version := f.account("ada")
	first, second := f.login("ada", version, 1), f.login("ada", version, 2)
	if err := f.EndLogin(t.Context(), first); err != nil || f.isLoggedIn(first) || !f.isLoggedIn(second) {
		t.Errorf("EndLogin: %v; first %v, second %v", err, f.isLoggedIn(first), f.isLoggedIn(second))
	}
	f.clock.advance(time.Hour)
	if f.isLoggedIn(second) {
		t.Error("a login outlives its time")
	}
}

func TestTheOldestLoginsOfAPersonEndBeyondTheLimit(t *testing.T) {
	f := open(t)
	version := f.account("ada")
	var logins []store.Login
	for i := range store.MaxLogins + 2 {
		logins = append(logins, f.login("ada", version, byte(i)))
		f.clock.advance(time.Second)
	}
	for i, login := range logins {
		if want := i >= 2; f.isLoggedIn(login) != want {
			t.Errorf("login %d is valid: %v", i, !want)
		}
	}
}
