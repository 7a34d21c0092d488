package accounts

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/controlplane/internal/api"
	"sluice.dev/sluice/controlplane/internal/store"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

// maxAccounts bounds the accounts of a system. Larger organisations have an OpenID provider.
const maxAccounts = 1000

// Accounts serves AccountService, and checks passwords. Its methods are safe for concurrent use.
type Accounts struct {
	pb.UnimplementedAccountServiceServer
	store  *store.Store
	hasher *hasher
}

// New returns the service over a store.
func New(kept *store.Store) *Accounts {
	return &Accounts{store: kept, hasher: newHasher()}
}

// ErrWrongPassword means that no account has this name and this password.
var ErrWrongPassword = errors.New("the name or the password is wrong")

// Check returns the account with this name and password, and its version for Store.AddLogin. Errors: ErrWrongPassword, ErrBusy, those
// of the store.
func (a *Accounts) Check(ctx context.Context, name, password string) (store.Account, int64, error) {
	account, version, err := a.store.Account(ctx, name)
	var none *store.NoAccountError
	hash := account.Hash
	if errors.As(err, &none) {
		hash, err = decoy, nil
	}
	if err != nil {
		return store.Account{}, 0, err
	}
	matches, err := a.hasher.matches(ctx, hash, password)
	if err == nil && (!matches || none != nil) {
		err = ErrWrongPassword
	}
	if err != nil {
		return store.Account{}, 0, err
	}
	return account, version, nil
}

// CreateAccount implements AccountService.
func (a *Accounts) CreateAccount(ctx context.Context, request *pb.CreateAccountRequest) (*pb.CreateAccountResponse, error) {
	present, err := a.store.Accounts(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	if len(present) >= maxAccounts {
		return nil, status.Errorf(codes.ResourceExhausted, "the system has %d accounts, which is the limit: delete unused ones, or use an OpenID provider",
			len(present))
	}
	hash, err := a.hasher.hash(ctx, request.GetPassword())
	if err != nil {
		return nil, statusOf(err)
	}
	made, err := a.store.CreateAccount(ctx, store.Account{Name: request.GetName(), Role: roles[request.GetRole()], Hash: hash})
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.CreateAccountResponse{Account: message(made)}, nil
}

// ListAccounts implements AccountService.
func (a *Accounts) ListAccounts(ctx context.Context, _ *pb.ListAccountsRequest) (*pb.ListAccountsResponse, error) {
	present, err := a.store.Accounts(ctx)
	if err != nil {
		return nil, api.StatusOf(err)
	}
	response := &pb.ListAccountsResponse{}
	for _, account := range present {
		response.Accounts = append(response.Accounts, message(account))
	}
	return response, nil
}

// UpdateAccount implements AccountService.
func (a *Accounts) UpdateAccount(ctx context.Context, request *pb.UpdateAccountRequest) (*pb.UpdateAccountResponse, error) {
	hash := ""
	if request.GetPassword() != "" {
		var err error
		if hash, err = a.hasher.hash(ctx, request.GetPassword()); err != nil {
			return nil, statusOf(err)
		}
	}
	changed, err := a.store.UpdateAccount(ctx, request.GetName(), func(account *store.Account) {
		if role := request.GetRole(); role != pb.AccountRole_ACCOUNT_ROLE_UNSPECIFIED {
			account.Role = roles[role]
		}
		if hash != "" {
			account.Hash = hash
		}
	})
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.UpdateAccountResponse{Account: message(changed)}, nil
}

// DeleteAccount implements AccountService.
func (a *Accounts) DeleteAccount(ctx context.Context, request *pb.DeleteAccountRequest) (*pb.DeleteAccountResponse, error) {
	if err := a.store.DeleteAccount(ctx, request.GetName()); err != nil {
		return nil, statusOf(err)
	}
	return &pb.DeleteAccountResponse{}, nil
}

// roles are the names of roles in certificates and in the store.
var roles = map[pb.AccountRole]string{
	pb.AccountRole_ACCOUNT_ROLE_VIEWER: "read-only", pb.AccountRole_ACCOUNT_ROLE_OPERATOR: "operator", pb.AccountRole_ACCOUNT_ROLE_ADMIN: "admin",
}

func message(account store.Account) *pb.Account {
	shown := &pb.Account{Name: account.Name, CreateTime: timestamppb.New(account.Created), UpdateTime: timestamppb.New(account.Changed)}
	for role, name := range roles {
		if name == account.Role {
			shown.Role = role
		}
	}
	return shown
}

func statusOf(err error) error {
	var exists *store.AccountExistsError
	var none *store.NoAccountError
	switch {
	case errors.As(err, &exists):
		return status.Error(codes.AlreadyExists, err.Error())
	case errors.As(err, &none):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, ErrBusy):
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return api.StatusOf(err)
}
