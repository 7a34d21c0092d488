package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// chapFlags are the flags of the credentials of one side.
type chapFlags struct {
	// name is the beginning of the names of the flags.
	name             string
	user, secretFile string
}

// addChapFlags adds the flags of the host's credentials and of the target's.
func addChapFlags(command *cobra.Command) (own, mutual *chapFlags) {
	own, mutual = &chapFlags{name: "chap"}, &chapFlags{name: "mutual-chap"}
	flags := command.Flags()
	flags.StringVar(&own.user, "chap-user", "", "CHAP name; empty: the initiator's name")
	flags.StringVar(&own.secretFile, "chap-secret-file", "", "file that holds the CHAP secret, 12 bytes or more; - for standard input")
	flags.StringVar(&mutual.user, "mutual-chap-user", "", "the target's CHAP name; empty: its IQN")
	flags.StringVar(&mutual.secretFile, "mutual-chap-secret-file", "", "file that holds the target's CHAP secret; - for standard input")
	return own, mutual
}

// credentials returns the credentials that the flags describe; nil: none. A name without a secret is refused, because the host would
// not be authenticated.
func (f *chapFlags) credentials(command *cobra.Command) (*pb.ChapCredentials, error) {
	if f.secretFile == "" && f.user != "" {
		return nil, usagef("--%[1]s-user without --%[1]s-secret-file: there would be no secret to ask for", f.name)
	}
	if f.secretFile == "" {
		return nil, nil
	}
	secret, err := f.secret(command)
	return &pb.ChapCredentials{Username: f.user, Password: secret}, err
}

// secret reads the secret from the file; empty: no file is given. A flag with the secret itself would show it to every user of the
// machine.
func (f *chapFlags) secret(command *cobra.Command) (string, error) {
	if f.secretFile == "" {
		return "", nil
	}
	read := func() ([]byte, error) { return os.ReadFile(f.secretFile) }
	if f.secretFile == "-" {
		read = func() ([]byte, error) { return io.ReadAll(command.InOrStdin()) }
	}
	text, err := read()
	if err != nil {
		return "", usagef("--%s-secret-file: %w", f.name, err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", usagef("--%s-secret-file: %s holds no secret", f.name, f.secretFile)
	}
	return secret, nil
}

// generatedBytes is the length of a generated secret before it is encoded. RFC 7143 §9.2.1 wants 96 random bits or more; in base64
// these are 16 characters, the most that Windows takes.
const generatedBytes = 12

func generateSecret() string {
	random := make([]byte, generatedBytes)
	_, _ = rand.Read(random) // it never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// chapChange is the requested change of the credentials of one side.
type chapChange struct {
	// side begins a sentence about the change.
	side string
	// user is the new name, if named is set.
	named bool
	user  string
	// secret is the new secret; empty: the stored one remains.
	secret string
	// generated: secret is to be printed, because the user does not know it.
	generated bool
}

func (f *chapFlags) change(command *cobra.Command, side string, generate bool) (chapChange, error) {
	secret, err := f.secret(command)
	if generate {
		secret = generateSecret()
	}
	return chapChange{side: side, named: command.Flags().Changed(f.name + "-user"), user: f.user, secret: secret, generated: generate}, err
}

// apply changes credentials. The control plane returns no secrets, so a given secret always counts as a change.
func (c chapChange) apply(to **pb.ChapCredentials) []string {
	var changes []string
	if !c.named && c.secret == "" {
		return nil
	}
	if *to == nil {
		*to = &pb.ChapCredentials{}
	}
	if c.named && (*to).GetUsername() != c.user {
		(*to).Username = c.user
		changes = append(changes, fmt.Sprintf("%s name %q", c.side, c.user))
	}
	if c.secret != "" {
		(*to).Password = c.secret
		changes = append(changes, c.side+" secret")
	}
	return changes
}

func setChap(k *kind, g *globals) *cobra.Command {
	var dryRun, generate, generateMutual, noMutual bool
	command := &cobra.Command{
		Use: "set-chap HOST", Short: "Change the CHAP names and secrets of a host", Args: cobra.ExactArgs(1),
		Long: "Change the CHAP names and secrets of a host, for logins from now on. Names and secrets without a flag remain. A secret comes " +
			"from a file or from standard input, or is generated: 16 characters, printed once. Sessions continue until they log in " +
			"again, and then need the new secret.",
	}
	own, mutual := addChapFlags(command)
	flags := command.Flags()
	flags.BoolVar(&generate, "generate", false, "generate the CHAP secret and print it")
	flags.BoolVar(&generateMutual, "generate-mutual", false, "generate the target's CHAP secret and print it")
	flags.BoolVar(&noMutual, "no-mutual-chap", false, "let the target no longer authenticate to the host")
	flags.BoolVar(&dryRun, "dry-run", false, "validate it only; change nothing")
	command.MarkFlagsMutuallyExclusive("generate", "chap-secret-file")
	command.MarkFlagsMutuallyExclusive("generate-mutual", "mutual-chap-secret-file", "no-mutual-chap")
	command.MarkFlagsMutuallyExclusive("mutual-chap-user", "no-mutual-chap")
	command.MarkFlagsOneRequired("chap-user", "chap-secret-file", "generate", "mutual-chap-user", "mutual-chap-secret-file",
		"generate-mutual", "no-mutual-chap")
	command.RunE = func(command *cobra.Command, names []string) error {
		if (generate || generateMutual) && g.structured() {
			return usagef("--output %s has no place for a generated secret: leave --output out", g.output)
		}
		if own.secretFile == "-" && mutual.secretFile == "-" {
			return usagef("--chap-secret-file and --mutual-chap-secret-file are both standard input: give a file for one of them")
		}
		ownChange, err := own.change(command, "CHAP", generate)
		if err != nil {
			return err
		}
		mutualChange, err := mutual.change(command, "mutual CHAP", generateMutual)
		if err != nil {
			return err
		}
		m := modification{fields: []string{"spec.chap", "spec.mutual_chap"}, apply: changing(func(host *pb.Host) ([]string, error) {
			spec := host.GetSpec()
			changes := append(ownChange.apply(&spec.Chap), mutualChange.apply(&spec.MutualChap)...)
			if noMutual && spec.GetMutualChap() != nil {
				spec.MutualChap = nil
				changes = append(changes, "no mutual CHAP")
			}
			return changes, nil
		})}
		return with(command, g, func(ctx context.Context, connection *grpc.ClientConn) error {
			if err := g.modify(ctx, command, connection, k, names[0], m, false, dryRun); err != nil || dryRun {
				return err
			}
			return printGenerated(command.OutOrStdout(), ownChange, mutualChange)
		})
	}
	return command
}

// printGenerated prints the secrets that the user has to copy to the host.
func printGenerated(to io.Writer, changes ...chapChange) error {
	for _, c := range changes {
		if !c.generated {
			continue
		}
		if _, err := fmt.Fprintf(to, "%s secret: %s\n", c.side, c.secret); err != nil {
			return err
		}
	}
	return nil
}
