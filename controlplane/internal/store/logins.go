package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// MaxLogins bounds the logins of one person at a time. A further one ends the oldest.
const MaxLogins = 20

// Login is the login of a person at the console. The browser has its secret; the store has a hash of it.
type Login struct {
	// Name of the person: of the local account, or what the OpenID provider says.
	Name string `json:"name"`
	// Role is one of server.Role.
	Role string `json:"role"`
	// Provider is the issuer of an OpenID login; empty: a local account.
	Provider string    `json:"provider,omitempty"`
	Hash     []byte    `json:"hash"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
}

// Names in keys are in hexadecimal digits, because a provider may send any character.
func (s *Store) loginPrefix(provider, name string) string {
	kind := "local"
	if provider != "" {
		kind = "oidc"
	}
	return s.prefix + "logins/" + kind + "/" + hex.EncodeToString([]byte(name)) + "/"
}

func (s *Store) loginKey(login Login) string {
	return s.loginPrefix(login.Provider, login.Name) + hex.EncodeToString(login.Hash)
}

func (s *Store) endLogins(account string) clientv3.Op {
	return clientv3.OpDelete(s.loginPrefix("", account), clientv3.WithPrefix())
}

// AddLogin stores a login that ends after ttl; etcd deletes it then. `version` is that of the local account, as Account returned it: a
// password that was changed meanwhile gives no login. Errors: NoAccountError.
func (s *Store) AddLogin(ctx context.Context, login Login, version int64, ttl time.Duration) (Login, error) {
	login.Created = s.now().UTC()
	login.Expires = login.Created.Add(ttl)
	value, err := json.Marshal(login)
	if err != nil {
		return login, err
	}
	if err := s.makeRoomForLogin(ctx, login); err != nil {
		return login, err
	}
	lease, err := s.client.Grant(ctx, int64(ttl/time.Second)+1)
	if err != nil {
		return login, committing(err)
	}
	var unchanged []clientv3.Cmp
	if login.Provider == "" {
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(s.accountKey(login.Name)), "=", version))
	}
	done, err := s.client.Txn(ctx).If(unchanged...).Then(clientv3.OpPut(s.loginKey(login), string(value), clientv3.WithLease(lease.ID))).Commit()
	if err != nil {
		return login, committing(err)
	}
	if !done.Succeeded {
		return login, &NoAccountError{login.Name}
	}
	return login, nil
}

// makeRoomForLogin ends the oldest logins of the person beyond the limit.
func (s *Store) makeRoomForLogin(ctx context.Context, login Login) error {
	present, err := readRecords[Login](ctx, s, s.loginPrefix(login.Provider, login.Name))
	if err != nil || len(present) < MaxLogins {
		return err
	}
	slices.SortFunc(present, func(a, b Login) int { return cmp.Or(a.Created.Compare(b.Created), slices.Compare(a.Hash, b.Hash)) })
	for _, old := range present[:len(present)-MaxLogins+1] {
		if err := s.EndLogin(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// FindLogin returns the login that has these three values; false: it has ended, or there was none.
func (s *Store) FindLogin(ctx context.Context, provider, name string, hash []byte) (Login, bool, error) {
	var login Login
	key := s.loginKey(Login{Provider: provider, Name: name, Hash: hash})
	got, err := s.client.Get(ctx, key)
	if err != nil {
		return login, false, fmt.Errorf("store: %w", err)
	}
	if len(got.Kvs) == 0 {
		return login, false, nil
	}
	if err := json.Unmarshal(got.Kvs[0].Value, &login); err != nil {
		return login, false, fmt.Errorf("%s in the store: %w", key, err)
	}
	return login, login.Expires.After(s.now()), nil
}

// EndLogin ends a login. A login that has ended already is no error.
func (s *Store) EndLogin(ctx context.Context, login Login) error {
	if _, err := s.client.Delete(ctx, s.loginKey(login)); err != nil {
		return committing(err)
	}
	return nil
}
