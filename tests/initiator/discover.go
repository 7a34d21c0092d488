package initiator

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
)

// Shown is a target and its portals, `host:port,portal-group-tag`, in the order of SendTargets.
type Shown struct {
	Target  string
	Portals []string
}

// Discover asks a portal which targets it shows to an initiator: SendTargets=All in a discovery session (RFC 7143 §4.2.7 and
// appendix C). Options.Target stays empty.
func Discover(ctx context.Context, options Options) ([]Shown, error) {
	options.complete()
	options.Target = ""
	ctx, cancel := context.WithTimeout(ctx, options.LoginTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", options.Portal)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // only the answer is needed
	if deadline, set := ctx.Deadline(); set {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	l := &login{options: options, conn: conn, answers: map[string]string{}, session: newSession(options, conn)}
	if err := l.run(); err != nil {
		return nil, err
	}
	request := newPDU(opText, flagFinal, 1, []byte("SendTargets=All\x00"))
	request.put32(20, noTag)
	request.put32(24, l.session.cmdSN)
	request.put32(28, l.session.expStatSN)
	if _, err := conn.Write(request.bytes()); err != nil {
		return nil, err
	}
	answer, err := readPDU(conn)
	if err != nil {
		return nil, err
	}
	if answer.opcode() != opTextResponse || answer.flags()&flagFinal == 0 {
		return nil, fmt.Errorf("%s: PDU %#02x with flags %#02x is no whole answer to SendTargets", options.Portal,
			answer.opcode(), answer.flags())
	}
	return parseTargets(answer.data)
}

// parseTargets reads TargetName and the TargetAddress keys that follow each.
func parseTargets(text []byte) ([]Shown, error) {
	var all []Shown
	for pair := range bytes.SplitSeq(text, []byte{0}) {
		key, value, _ := strings.Cut(string(pair), "=")
		switch {
		case key == "TargetName":
			all = append(all, Shown{Target: value})
		case key == "TargetAddress" && len(all) > 0:
			last := &all[len(all)-1]
			last.Portals = append(last.Portals, value)
		case key != "":
			return nil, fmt.Errorf("SendTargets is answered with %q where a target's name was due", pair)
		}
	}
	return all, nil
}
