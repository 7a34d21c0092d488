package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

func accountCommand(g *globals) *cobra.Command {
	command := &cobra.Command{
		Use: "account", Short: "Manage the local accounts with which people log in at the console port", Args: cobra.NoArgs,
		Long: "Manage the local accounts with which people log in at the console port (`sluice-controlplane serve --console`). Roles: a viewer " +
			"reads; an operator changes all objects, too; an admin also manages accounts, backups and servers.",
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(createAccount(g), listAccounts(g), setAccount(g), deleteAccount(g))
	return command
}

// accountRoles are the roles by their names in flags.
var accountRoles = map[string]pb.AccountRole{
	"viewer": pb.AccountRole_ACCOUNT_ROLE_VIEWER, "operator": pb.AccountRole_ACCOUNT_ROLE_OPERATOR, "admin": pb.AccountRole_ACCOUNT_ROLE_ADMIN,
}

func accountRole(name string) (pb.AccountRole, error) {
	role, known := accountRoles[name]
	if !known {
		return role, usagef("--role: got %q; it has to be viewer, operator or admin", name)
	}
	return role, nil
}

func roleName(role pb.AccountRole) string {
	for name, known := range accountRoles {
		if known == role {
			return name
		}
	}
	return "unknown"
}

const passwordFileFlag = "password-file"

// newPassword reads a password from a file or, without one, from the terminal, twice and unseen.
func newPassword(command *cobra.Command, file string) (string, error) {
	var text []byte
	var err error
	switch {
	case file == "-":
		text, err = io.ReadAll(command.InOrStdin())
	case file != "":
		text, err = os.ReadFile(file)
	case isTerminal(command.InOrStdin()):
		return askPassword(command)
	default:
		return "", usagef("--%s is missing, and there is no terminal to ask on; - reads standard input", passwordFileFlag)
	}
	if err != nil {
		return "", usagef("--%s: %w", passwordFileFlag, err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func askPassword(command *cobra.Command) (string, error) {
	terminal := int(command.InOrStdin().(*os.File).Fd()) // isTerminal has checked that
	var given [2]string
	for i, prompt := range []string{"Password: ", "The same password again: "} {
		_, _ = fmt.Fprint(command.ErrOrStderr(), prompt)
		text, err := term.ReadPassword(terminal)
		_, _ = fmt.Fprintln(command.ErrOrStderr())
		if err != nil {
			return "", err
		}
		given[i] = string(text)
	}
	if given[0] != given[1] {
		return "", errors.New("the two passwords differ: nothing was done")
	}
	return given[0], nil
}

func createAccount(g *globals) *cobra.Command {
	var role, file string
	command := &cobra.Command{
		Use: "create NAME", Short: "Make an account; asks for the password", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			wanted, err := accountRole(role)
			if err != nil {
				return err
			}
			password, err := newPassword(command, file)
			if err != nil {
				return err
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				made, err := pb.NewAccountServiceClient(connection).CreateAccount(ctx,
					&pb.CreateAccountRequest{Name: names[0], Role: wanted, Password: password})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(command.OutOrStdout(), "account %s created, role %s\n", made.GetAccount().GetName(), role)
				return err
			})
		},
	}
	command.Flags().StringVar(&role, "role", "viewer", "viewer, operator or admin")
	command.Flags().StringVar(&file, passwordFileFlag, "", "file with the password, 12 to 256 bytes; - for standard input; empty: ask")
	return command
}

func listAccounts(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the accounts", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				listed, err := pb.NewAccountServiceClient(connection).ListAccounts(ctx, &pb.ListAccountsRequest{})
				if err != nil {
					return err
				}
				if g.structured() {
					shown := map[string]any{}
					if err := asMap(listed, shown); err != nil {
						return err
					}
					return encode(command.OutOrStdout(), shown, g.output)
				}
				out := tabwriter.NewWriter(command.OutOrStdout(), 0, 8, 3, ' ', 0)
				_, _ = fmt.Fprintln(out, "NAME\tROLE\tCREATED\tCHANGED")
				for _, account := range listed.GetAccounts() {
					_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", account.GetName(), roleName(account.GetRole()),
						account.GetCreateTime().AsTime().Format(time.RFC3339), account.GetUpdateTime().AsTime().Format(time.RFC3339))
				}
				return out.Flush()
			})
		},
	}
}

func setAccount(g *globals) *cobra.Command {
	var role, file string
	var password bool
	command := &cobra.Command{
		Use: "set NAME", Short: "Change the role or the password of an account, and end its logins", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			request := &pb.UpdateAccountRequest{Name: names[0]}
			var err error
			if role != "" {
				if request.Role, err = accountRole(role); err != nil {
					return err
				}
			}
			if password || file != "" {
				if request.Password, err = newPassword(command, file); err != nil {
					return err
				}
			}
			if role == "" && request.Password == "" {
				return usagef("nothing to change: give --role, --password or --%s", passwordFileFlag)
			}
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if _, err := pb.NewAccountServiceClient(connection).UpdateAccount(ctx, request); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "account %s changed; its logins have ended\n", names[0])
				return err
			})
		},
	}
	command.Flags().StringVar(&role, "role", "", "viewer, operator or admin; empty: as before")
	command.Flags().BoolVar(&password, "password", false, "ask for a new password")
	command.Flags().StringVar(&file, passwordFileFlag, "", "file with the new password, 12 to 256 bytes; - for standard input")
	return command
}

func deleteAccount(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete an account, and end its logins", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
				if _, err := pb.NewAccountServiceClient(connection).DeleteAccount(ctx, &pb.DeleteAccountRequest{Name: names[0]}); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "account %s deleted\n", names[0])
				return err
			})
		},
	}
}
