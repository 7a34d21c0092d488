package accounts_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/controlplane/internal/accounts"
	"sluice.dev/sluice/controlplane/internal/etcd"
	"sluice.dev/sluice/controlplane/internal/etcd/etcdtest"
	"sluice.dev/sluice/controlplane/internal/keyring"
	"sluice.dev/sluice/controlplane/internal/model"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

var shared *etcd.Embedded

func TestMain(m *testing.M) { etcdtest.Main(m, &shared) }

func TestAPasswordIsCheckedAgainstTheAccountAsItIsNow(t *testing.T) {
	ring, err := keyring.Parse(keyring.GenerateKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), shared.Client, store.Options{Cluster: "t-" + model.NewUID(), Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	people, ctx := accounts.New(kept), t.Context()
	check := func(password string, want error) {
		t.Helper()
		if _, _, err := people.Check(ctx, "ada", password); !errors.Is(err, want) {
			t.Errorf("%q: %v, wanted %v", password, err, want)
		}
	}
	check("the first password", accounts.ErrWrongPassword)
	made, err := people.CreateAccount(ctx, &pb.CreateAccountRequest{Name: "ada", Role: pb.AccountRole_ACCOUNT_ROLE_VIEWER, Password: "the first password"})
	if err != nil || made.GetAccount().GetRole() != pb.AccountRole_ACCOUNT_ROLE_VIEWER {
		t.Fatal(made, err)
	}
	_, err = people.CreateAccount(ctx, &pb.CreateAccountRequest{Name: "ada", Role: pb.AccountRole_ACCOUNT_ROLE_ADMIN, Password: "the other password"})
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("a second account of the name: %v", err)
	}
	check("the first password", nil)
	if _, err := people.UpdateAccount(ctx, &pb.UpdateAccountRequest{Name: "ada", Password: "the second password"}); err != nil {
		t.Fatal(err)
	}
	check("the first password", accounts.ErrWrongPassword)
	check("the second password", nil)
	changed, err := people.UpdateAccount(ctx, &pb.UpdateAccountRequest{Name: "ada", Role: pb.AccountRole_ACCOUNT_ROLE_OPERATOR})
	if err != nil || changed.GetAccount().GetRole() != pb.AccountRole_ACCOUNT_ROLE_OPERATOR {
		t.Errorf("a new role: %v, %v", changed, err)
	}
	check("the second password", nil)
	stored, err := shared.Client.Get(ctx, "/sluice/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range stored.Kvs {
		if strings.Contains(string(kv.Value), "second password") {
			t.Errorf("%s has the password", kv.Key)
		}
	}
	if _, err := people.DeleteAccount(ctx, &pb.DeleteAccountRequest{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	check("the second password", accounts.ErrWrongPassword)
	for name, call := range map[string]func() error{
		"update": func() error { _, err := people.UpdateAccount(ctx, &pb.UpdateAccountRequest{Name: "ada"}); return err },
		"delete": func() error { _, err := people.DeleteAccount(ctx, &pb.DeleteAccountRequest{Name: "ada"}); return err },
	} {
		if err := call(); status.Code(err) != codes.NotFound {
			t.Errorf("%s of a deleted account: %v", name, err)
		}
	}
}
