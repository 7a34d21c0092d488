package accounts

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"golang.org/x/crypto/argon2"
)

// Parameters of Argon2id for new hashes (RFC 9106 §4). A hash takes about 0.1 s of one processor. A hash in the store names its own
// parameters, so these can change.
const (
	passes    = 3
	memoryKiB = 32 << 10
	lanes     = 1
	saltBytes = 16
	hashBytes = 32
)

// Bounds of the parameters in a stored hash: a damaged store must not take the memory of the process.
const (
	maxPasses    = 16
	maxMemoryKiB = 256 << 10
	maxHashBytes = 64
)

// Bounds of hashing: memory for two hashes at a time, and few calls that wait for it.
const (
	hashersAtOnce = 2
	maxWaiting    = 16
)

// ErrBusy means that too many passwords are being checked. The caller can try again.
var ErrBusy = errors.New("too many passwords are being checked: try again")

// hasher computes hashes, a bounded number at a time.
type hasher struct {
	entered chan struct{}
	working chan struct{}
}

func newHasher() *hasher {
	return &hasher{make(chan struct{}, hashersAtOnce+maxWaiting), make(chan struct{}, hashersAtOnce)}
}

// run calls compute once there is room. Errors: ErrBusy, those of the context.
func (h *hasher) run(ctx context.Context, compute func()) error {
	select {
	case h.entered <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-h.entered }()
	select {
	case h.working <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-h.working }()
	compute()
	return nil
}

// decoy is a hash that is checked if no account has the name, so that the time of an answer does not tell which names exist.
var decoy = encode(make([]byte, saltBytes), make([]byte, hashBytes))

// hash returns the text that is stored for a password: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`, as the tools of Argon2 write it.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // it never fails
	var raw []byte
	err := h.run(ctx, func() { raw = argon2.IDKey([]byte(password), salt, passes, memoryKiB, lanes, hashBytes) })
	return encode(salt, raw), err
}

func encode(salt, raw []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKiB, passes, lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(raw))
}

// matches reports whether a stored text is that of the password. Errors: ErrBusy; or the text is no hash.
func (h *hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	known, err := parseHash(stored)
	if err != nil {
		return false, err
	}
	var raw []byte
	err = h.run(ctx, func() {
		raw = argon2.IDKey([]byte(password), known.salt, known.passes, known.memory, known.lanes, uint32(len(known.raw)))
	})
	return err == nil && subtle.ConstantTimeCompare(raw, known.raw) == 1, err
}

type parsedHash struct {
	passes, memory uint32
	lanes          uint8
	salt, raw      []byte
}

// form of a stored hash: version, memory, passes, lanes, salt, hash.
var form = regexp.MustCompile(`^\$argon2id\$v=(\d+)\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$`)

func parseHash(text string) (parsedHash, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return parsedHash{}, errors.New("the stored hash of the password has not the form of Argon2id: set the password again")
	}
	number := func(text string, most uint64) uint32 {
		value, err := strconv.ParseUint(text, 10, 32)
		if err != nil || value > most {
			return 0
		}
		return uint32(value)
	}
	known := parsedHash{memory: number(parts[2], maxMemoryKiB), passes: number(parts[3], maxPasses), lanes: uint8(number(parts[4], math.MaxUint8))}
	var err error
	if known.salt, err = base64.RawStdEncoding.DecodeString(parts[5]); err == nil {
		known.raw, err = base64.RawStdEncoding.DecodeString(parts[6])
	}
	if err != nil || len(known.raw) == 0 || len(known.raw) > maxHashBytes || known.memory == 0 || known.passes == 0 || known.lanes == 0 ||
		number(parts[1], math.MaxUint32) != argon2.Version {
		return known, errors.New("the stored hash of the password has parameters out of range: set the password again")
	}
	return known, nil
}
