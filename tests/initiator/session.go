package initiator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Options of a session. Portal, Target, Initiator are required.
type Options struct {
	Portal    string
	Target    string
	Initiator string
	ISID      [6]byte
	CHAP      *CHAP
	// Keys are additional text keys of the first login request, as `Key=Value`.
	Keys []string
	// LoginTimeout bounds the time for connection and login together. 0: 3 s.
	LoginTimeout time.Duration
	// PingAfter is the silence of the target after which it is pinged (NOP-Out). 0: 1 s.
	PingAfter time.Duration
	// SilenceLimit is the silence after which the session is dropped. 0: 5 s, the earliest time that DESIGN R6 assumes for a host
	// (limits::kMinHostTimeout).
	SilenceLimit time.Duration
}

func (o *Options) complete() {
	defaultTo(&o.LoginTimeout, 3*time.Second)
	defaultTo(&o.PingAfter, time.Second)
	defaultTo(&o.SilenceLimit, 5*time.Second)
}

func defaultTo(value *time.Duration, otherwise time.Duration) {
	if *value == 0 {
		*value = otherwise
	}
}

// Reason is the cause of the loss of a session, or of a command on it.
type Reason int

// Reasons.
const (
	LostReset     Reason = iota // RST: the peer has no state of the connection
	LostClosed                  // FIN
	LostSilent                  // no data for SilenceLimit
	LostNetwork                 // another error of the socket
	LostProtocol                // the target violated the protocol
	LostAbandoned               // the caller's time was over, or the session was closed locally
	LostLogout                  // the target requested a logout, which was done
)

func (r Reason) String() string {
	return [...]string{"reset", "closed", "silent", "network error", "protocol error", "abandoned", "logged out"}[r]
}

// LostError means that the command has no answer.
type LostError struct {
	Portal string
	Reason Reason
	// Sent: it may have reached the target.
	Sent bool
	// At is the time of the loss, Heard the time of the last data from the target.
	At, Heard time.Time
	Err       error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s: session lost (%s): %v", e.Portal, e.Reason, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

type call struct {
	command *Command // nil: a task management request or a logout
	data    []byte
	answer  chan Response
}

const (
	writeQueue = 4096                   // PDUs; the command window keeps it far from full
	pingTick   = 100 * time.Millisecond // interval of the checks for silence
)

// Session is an iSCSI session with one connection, in full feature phase. Its methods are safe for concurrent use.
type Session struct {
	options             Options
	conn                *net.TCPConn
	segment, firstBurst int
	out                 chan []byte
	over                chan struct{}

	mu           sync.Mutex
	window       *sync.Cond
	cmdSN        uint32
	expStatSN    uint32
	maxCmdSN     uint32
	nextTag      uint32
	calls        map[uint32]*call
	lastReceived time.Time
	pinging      bool
	leaving      bool
	lost         *LostError
}

func newSession(options Options, conn net.Conn) *Session {
	s := &Session{options: options, conn: conn.(*net.TCPConn), out: make(chan []byte, writeQueue),
		over: make(chan struct{}), cmdSN: 1, nextTag: 1, calls: map[uint32]*call{}, lastReceived: time.Now()}
	s.window = sync.NewCond(&s.mu)
	return s
}

func (s *Session) start() {
	s.lastReceived = time.Now()
	go s.write()
	go s.read()
	go s.watch()
}

// Over is closed when the session is lost; Lost returns the cause.
func (s *Session) Over() <-chan struct{} { return s.over }

// Lost returns nil while the session lives.
func (s *Session) Lost() *LostError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Leaving reports whether the target has requested a logout; new commands should use another session.
func (s *Session) Leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// Do runs a command. Errors are *LostError. If the context ended, the result of the command is unknown.
func (s *Session) Do(ctx context.Context, command Command) (Response, error) {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.window.Broadcast()
	})
	defer stop()
	c, err := s.begin(ctx, &command)
	if err != nil {
		return Response{}, err
	}
	return s.wait(ctx, c)
}

func (s *Session) wait(ctx context.Context, c *call) (Response, error) {
	select {
	case response := <-c.answer:
		return response, nil
	case <-ctx.Done():
	case <-s.over:
		select {
		case response := <-c.answer: // it arrived first
			return response, nil
		default:
		}
		lost := *s.Lost()
		lost.Sent = true
		return Response{}, &lost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Response{}, &LostError{Portal: s.options.Portal, Reason: LostAbandoned, Sent: true, At: time.Now(),
		Heard: s.lastReceived, Err: ctx.Err()}
}

// begin waits for room in the command window and sends the command with the data that it may send at once.
func (s *Session) begin(ctx context.Context, command *Command) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.lost == nil && ctx.Err() == nil && serialAfter(s.cmdSN, s.maxCmdSN) {
		s.window.Wait()
	}
	if s.lost != nil {
		lost := *s.lost
		return nil, &lost
	}
	if err := ctx.Err(); err != nil {
		return nil, &LostError{Portal: s.options.Portal, Reason: LostAbandoned, At: time.Now(), Heard: s.lastReceived, Err: err}
	}
	c := &call{command: command, answer: make(chan Response, 1)}
	flags, expected := byte(flagFinal|0x01), command.In // simple queueing
	if command.In > 0 {
		flags |= 0x40
		c.data = make([]byte, 0, command.In)
	}
	if len(command.Out) > 0 {
		flags, expected = flags|0x20, len(command.Out)
	}
	immediate := min(len(command.Out), s.firstBurst, s.segment)
	p := newPDU(opCommand, flags, s.assignTag(c), command.Out[:immediate])
	p.putLUN(command.LUN)
	p.put32(20, uint32(expected))
	copy(p.header[32:], command.CDB)
	s.number(p, true)
	s.send(p)
	return c, nil
}

// assignTag assigns a tag to a call. The caller holds the lock.
func (s *Session) assignTag(c *call) uint32 {
	tag := s.nextTag
	s.nextTag++
	if s.nextTag == noTag {
		s.nextTag = 1
	}
	s.calls[tag] = c
	return tag
}

// number sets CmdSN and ExpStatSN. The caller holds the lock, so that numbers and bytes are sent in the same order.
func (s *Session) number(p *pdu, takes bool) {
	p.put32(24, s.cmdSN)
	p.put32(28, s.expStatSN)
	if takes {
		s.cmdSN++
	}
}

// send queues a PDU for the writer. The caller holds the lock. The queue is larger than the window plus the answers to pings.
func (s *Session) send(p *pdu) {
	select {
	case s.out <- p.bytes():
	default:
		s.fail(LostProtocol, errors.New("the target has asked for more than can be queued"))
	}
}

func (s *Session) write() {
	for {
		select {
		case bytes := <-s.out:
			if _, err := s.conn.Write(bytes); err != nil {
				s.failed(reasonOf(err), err)
				return
			}
		case <-s.over:
			return
		}
	}
}

func (s *Session) read() {
	for {
		p, err := readPDU(s.conn)
		if err != nil {
			s.failed(reasonOf(err), err)
			return
		}
		s.mu.Lock()
		s.lastReceived, s.pinging = time.Now(), false
		err = s.handle(p)
		s.mu.Unlock()
		if err != nil {
			s.failed(LostProtocol, err)
			return
		}
	}
}

// watch pings a silent target, and finally drops the session.
func (s *Session) watch() {
	ticker := time.NewTicker(pingTick)
	defer ticker.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		silence := time.Since(s.lastReceived)
		switch {
		case silence >= s.options.SilenceLimit:
			s.fail(LostSilent, fmt.Errorf("not heard for %v", silence.Round(time.Millisecond)))
		case silence >= s.options.PingAfter && !s.pinging:
			s.pinging = true
			p := newPDU(opNopOut|flagImmediate, flagFinal, s.assignTag(&call{answer: make(chan Response, 1)}), nil)
			p.put32(20, noTag)
			s.number(p, false)
			s.send(p)
		}
		s.mu.Unlock()
	}
}

func (s *Session) failed(reason Reason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(reason, err)
}

// fail ends the session; the first reason stays. The caller holds the lock. The socket is closed normally: the kernel may deliver
// unsent data late, as with real hosts.
func (s *Session) fail(reason Reason, err error) {
	if s.lost != nil {
		return
	}
	s.lost = &LostError{Portal: s.options.Portal, Reason: reason, At: time.Now(), Heard: s.lastReceived, Err: err}
	_ = s.conn.Close()
	close(s.over)
	s.window.Broadcast()
}

// Close ends the session at once, without a logout.
func (s *Session) Close() { s.failed(LostAbandoned, net.ErrClosed) }

// Reset ends it with an RST.
func (s *Session) Reset() {
	_ = s.conn.SetLinger(0)
	s.failed(LostAbandoned, errors.New("reset by ourselves"))
}

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return LostClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return LostReset
	case errors.Is(err, net.ErrClosed):
		return LostAbandoned
	}
	var network net.Error
	if errors.As(err, &network) {
		return LostNetwork
	}
	return LostProtocol
}
