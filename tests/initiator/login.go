package initiator

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net"
	"strconv"
	"strings"
	"time"
)

// CHAP has the credentials of a session (RFC 7143 §12.1.3). With MutualSecret it also asks the target to authenticate, and
// accepts only MutualUser as the target's CHAP_N, if that is set.
type CHAP struct {
	User, Secret             string
	MutualUser, MutualSecret string
}

// LoginError is a refusal: status class and detail, RFC 7143 §11.13.5.
type LoginError struct {
	Portal string
	Status uint16
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("%s: login refused with status %04x", e.Portal, e.Status)
}

const (
	stageSecurity  = 0
	stageOperation = 1
	stageFull      = 3
	flagTransit    = 0x80

	statusMovedTemporarily = 0x0101
	maxRedirects           = 2
)

type login struct {
	options Options
	conn    net.Conn
	answers map[string]string
	session *Session
}

// Login opens a session: it connects, authenticates, negotiates, and follows a redirection. Errors are *LoginError, or errors of
// the network.
func Login(ctx context.Context, options Options) (*Session, error) {
	options.complete()
	for range maxRedirects {
		session, moved, err := loginOnce(ctx, options)
		if err != nil || moved == "" {
			return session, err
		}
		options.Portal = moved
	}
	return nil, fmt.Errorf("%s: redirected more than %d times", options.Portal, maxRedirects)
}

func loginOnce(ctx context.Context, options Options) (*Session, string, error) {
	ctx, cancel := context.WithTimeout(ctx, options.LoginTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", options.Portal)
	if err != nil {
		return nil, "", err
	}
	unblock := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	l := &login{options: options, conn: conn, answers: map[string]string{}, session: newSession(options, conn)}
	err = l.run()
	if !unblock() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		var refused *LoginError
		if errors.As(err, &refused) && refused.Status == statusMovedTemporarily {
			moved, _, _ := strings.Cut(l.answers["TargetAddress"], ",")
			return nil, moved, nil
		}
		return nil, "", err
	}
	l.session.start()
	return l.session, "", nil
}

func (l *login) run() error {
	names := []string{"InitiatorName=" + l.options.Initiator, "TargetName=" + l.options.Target, "SessionType=Normal"}
	if l.options.Target == "" {
		names = []string{"InitiatorName=" + l.options.Initiator, "SessionType=Discovery"}
	}
	names = append(names, l.options.Keys...)
	if l.options.CHAP != nil {
		if err := l.prove(names); err != nil {
			return err
		}
		names = nil
	}
	offers := append(names, "HeaderDigest=None", "DataDigest=None", "InitialR2T=Yes", "ImmediateData=Yes",
		"MaxRecvDataSegmentLength="+strconv.Itoa(maxSegment), "MaxBurstLength=262144", "FirstBurstLength=65536",
		"DefaultTime2Wait=0", "DefaultTime2Retain=0", "MaxOutstandingR2T=1", "ErrorRecoveryLevel=0", "MaxConnections=1",
		"DataPDUInOrder=Yes", "DataSequenceInOrder=Yes")
	for range 8 {
		final, err := l.ask(stageOperation, stageFull, offers)
		if err != nil {
			return err
		}
		if final {
			l.session.segment = l.number("MaxRecvDataSegmentLength", 8192)
			l.session.firstBurst = l.number("FirstBurstLength", 65536)
			return nil
		}
		offers = nil
	}
	return fmt.Errorf("%s: a login without an end", l.options.Portal)
}

func (l *login) number(key string, otherwise int) int {
	if value, err := strconv.Atoi(l.answers[key]); err == nil {
		return value
	}
	return otherwise
}

var algorithms = map[string]func() hash.Hash{"7": sha256.New, "5": md5.New}

func proof(algorithm string, identifier byte, secret string, challenge []byte) []byte {
	sum := algorithms[algorithm]()
	sum.Write([]byte{identifier})
	sum.Write([]byte(secret))
	sum.Write(challenge)
	return sum.Sum(nil)
}

func (l *login) prove(names []string) error {
	if _, err := l.ask(stageSecurity, -1, append(names, "AuthMethod=CHAP")); err != nil {
		return err
	}
	if _, err := l.ask(stageSecurity, -1, []string{"CHAP_A=7,5"}); err != nil {
		return err
	}
	algorithm := l.answers["CHAP_A"]
	identifier, err := strconv.ParseUint(l.answers["CHAP_I"], 0, 8)
	challenge, badHex := hex.DecodeString(strings.TrimPrefix(strings.ToLower(l.answers["CHAP_C"]), "0x"))
	if algorithms[algorithm] == nil || err != nil || badHex != nil {
		return fmt.Errorf("%s: no CHAP challenge that can be understood", l.options.Portal)
	}
	keys := []string{"CHAP_N=" + l.options.CHAP.User,
		"CHAP_R=0x" + hex.EncodeToString(proof(algorithm, byte(identifier), l.options.CHAP.Secret, challenge))}
	var ours [16]byte
	mutual := l.options.CHAP.MutualSecret
	if mutual != "" {
		if _, err := rand.Read(ours[:]); err != nil {
			return err
		}
		keys = append(keys, "CHAP_I=77", "CHAP_C=0x"+hex.EncodeToString(ours[:]))
	}
	if _, err := l.ask(stageSecurity, stageOperation, keys); err != nil {
		return err
	}
	if mutual != "" {
		expected := "0x" + hex.EncodeToString(proof(algorithm, 77, mutual, ours[:]))
		if subtle.ConstantTimeCompare([]byte(strings.ToLower(l.answers["CHAP_R"])), []byte(expected)) != 1 {
			return fmt.Errorf("%s: the target did not prove itself", l.options.Portal)
		}
		if want := l.options.CHAP.MutualUser; want != "" && l.answers["CHAP_N"] != want {
			return fmt.Errorf("%s: the target authenticates itself as %q, not as %q", l.options.Portal, l.answers["CHAP_N"], want)
		}
	}
	return nil
}

// ask sends a Login Request (RFC 7143 §11.12) and reads its answer. next -1: the stage continues.
func (l *login) ask(stage, next int, keys []string) (transit bool, err error) {
	flags := byte(stage << 2)
	if next >= 0 {
		flags |= flagTransit | byte(next)
	}
	var text []byte
	for _, key := range keys {
		text = append(append(text, key...), 0)
	}
	request := newPDU(opLogin|flagImmediate, flags, 0, text)
	copy(request.header[8:14], l.options.ISID[:])
	request.put32(24, l.session.cmdSN)
	request.put32(28, l.session.expStatSN)
	if _, err := l.conn.Write(request.bytes()); err != nil {
		return false, err
	}
	answer, err := readPDU(l.conn)
	if err != nil {
		return false, err
	}
	if answer.opcode() != opLoginResponse {
		return false, fmt.Errorf("%s: PDU %#02x answers a login", l.options.Portal, answer.opcode())
	}
	for pair := range bytes.SplitSeq(answer.data, []byte{0}) {
		if key, value, found := strings.Cut(string(pair), "="); found {
			l.answers[key] = value
		}
	}
	if status := uint16(answer.header[36])<<8 | uint16(answer.header[37]); status != 0 {
		return false, &LoginError{l.options.Portal, status}
	}
	l.session.expStatSN = answer.get32(24) + 1
	l.session.maxCmdSN = answer.get32(32)
	return next >= 0 && answer.flags()&flagTransit != 0, nil
}
