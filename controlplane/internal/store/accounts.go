package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Account is a local account of a person. The store has a hash of the password only.
type Account struct {
	Name string `json:"name"`
	// Role is one of server.Role, as in `read-only`.
	Role string `json:"role"`
	// Hash of the password, as internal/accounts writes it.
	Hash    string    `json:"hash"`
	Created time.Time `json:"created"`
	// Changed is when the role or the password was set last.
	Changed time.Time `json:"changed"`
}

// AccountExistsError means that another account has the name.
type AccountExistsError struct{ Name string }

func (e *AccountExistsError) Error() string {
	return fmt.Sprintf("there is an account %q already", e.Name)
}

// NoAccountError means that no account has the name, or that it was changed or deleted at the same time.
type NoAccountError struct{ Name string }

func (e *NoAccountError) Error() string { return fmt.Sprintf("there is no account %q", e.Name) }

func (s *Store) accountPrefix() string         { return s.prefix + "accounts/" }
func (s *Store) accountKey(name string) string { return s.accountPrefix() + name }

// CreateAccount stores a new account. Errors: AccountExistsError.
func (s *Store) CreateAccount(ctx context.Context, account Account) (Account, error) {
	account.Created = s.now().UTC()
	account.Changed = account.Created
	value, err := json.Marshal(account)
	if err != nil {
		return account, err
	}
	key := s.accountKey(account.Name)
	done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, string(value))).Commit()
	if err != nil {
		return account, committing(err)
	}
	if !done.Succeeded {
		return account, &AccountExistsError{account.Name}
	}
	return account, nil
}

// Accounts returns all accounts, in the order of their names.
func (s *Store) Accounts(ctx context.Context) ([]Account, error) {
	return readRecords[Account](ctx, s, s.accountPrefix())
}

// Account returns an account with its version, which AddLogin compares. Errors: NoAccountError.
func (s *Store) Account(ctx context.Context, name string) (Account, int64, error) {
	var account Account
	got, err := s.client.Get(ctx, s.accountKey(name))
	if err != nil {
		return account, 0, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return account, 0, &NoAccountError{name}
	}
	if err := json.Unmarshal(got.Kvs[0].Value, &account); err != nil {
		return account, 0, fmt.Errorf("%s in the store: %w", got.Kvs[0].Key, err)
	}
	return account, got.Kvs[0].ModRevision, nil
}

// UpdateAccount changes an account, and ends its logins, so that each later one has the new password and role. Errors: NoAccountError.
func (s *Store) UpdateAccount(ctx context.Context, name string, change func(*Account)) (Account, error) {
	for range attempts {
		account, version, err := s.Account(ctx, name)
		if err != nil {
			return account, err
		}
		change(&account)
		account.Changed = s.now().UTC()
		value, err := json.Marshal(account)
		if err != nil {
			return account, err
		}
		done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.accountKey(name)), "=", version)).
			Then(clientv3.OpPut(s.accountKey(name), string(value)), s.endLogins(name)).Commit()
		if err != nil {
			return account, committing(err)
		}
		if done.Succeeded {
			return account, nil
		}
	}
	return Account{}, ErrBusy
}

// DeleteAccount deletes an account and ends its logins. Errors: NoAccountError.
func (s *Store) DeleteAccount(ctx context.Context, name string) error {
	key := s.accountKey(name)
	done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), ">", 0)).
		Then(clientv3.OpDelete(key), s.endLogins(name)).Commit()
	if err != nil {
		return committing(err)
	}
	if !done.Succeeded {
		return &NoAccountError{name}
	}
	return nil
}
