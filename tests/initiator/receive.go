package initiator

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// handle processes a PDU of the target. The caller holds the lock.
func (s *Session) handle(p *pdu) error {
	s.count(p)
	switch p.opcode() {
	case opNopIn:
		s.answerPing(p)
	case opCommandResponse:
		return s.commandEnds(p)
	case opDataIn:
		return s.dataIn(p)
	case opR2T:
		return s.solicited(p)
	case opTaskResponse:
		s.finish(p.tag(), Response{Status: p.header[2]})
	case opLogoutResponse:
		s.fail(LostLogout, errors.New("logged out"))
	case opAsync:
		return s.async(p)
	case opReject:
		return fmt.Errorf("rejected, reason %02x", p.header[2])
	default:
		return fmt.Errorf("PDU %#02x", p.opcode())
	}
	return nil
}

// count updates StatSN and the command window (RFC 7143 §4.2.2).
func (s *Session) count(p *pdu) {
	hasStatus := true
	switch p.opcode() {
	case opDataIn:
		hasStatus = p.flags()&0x01 != 0
	case opR2T:
		hasStatus = false
	case opNopIn:
		hasStatus = p.tag() != noTag
	}
	if hasStatus {
		s.expStatSN = p.get32(24) + 1
	}
	if max := p.get32(32); serialAfter(max, s.maxCmdSN) {
		s.maxCmdSN = max
		s.window.Broadcast()
	}
}

func (s *Session) answerPing(p *pdu) {
	if p.tag() != noTag {
		s.finish(p.tag(), Response{})
		return
	}
	if target := p.get32(20); target != noTag {
		pong := newPDU(opNopOut|flagImmediate, flagFinal, noTag, nil)
		copy(pong.header[8:16], p.header[8:16])
		pong.put32(20, target)
		s.number(pong, false)
		s.send(pong)
	}
}

func (s *Session) finish(tag uint32, response Response) {
	if c := s.calls[tag]; c != nil {
		delete(s.calls, tag)
		c.answer <- response
	}
}

func (s *Session) commandEnds(p *pdu) error {
	c := s.calls[p.tag()]
	if c == nil || c.command == nil {
		return fmt.Errorf("a response for the tag %#x, which is not in use", p.tag())
	}
	if p.header[2] != 0 {
		return fmt.Errorf("iSCSI response %02x", p.header[2])
	}
	response := Response{Status: p.header[3], Data: c.data}
	if response.Status == StatusCheckCondition {
		response.Sense = decodeSense(p.data)
	}
	s.finish(p.tag(), response)
	return nil
}

func (s *Session) dataIn(p *pdu) error {
	c := s.calls[p.tag()]
	if c == nil || c.command == nil {
		return fmt.Errorf("data for the tag %#x, which is not in use", p.tag())
	}
	if int(p.get32(40)) != len(c.data) || len(c.data)+len(p.data) > c.command.In {
		return fmt.Errorf("%d bytes of data at %d, expected at %d of %d", len(p.data), p.get32(40), len(c.data), c.command.In)
	}
	c.data = append(c.data, p.data...)
	if p.flags()&0x01 != 0 {
		s.finish(p.tag(), Response{Status: p.header[3], Data: c.data})
	}
	return nil
}

// solicited answers an R2T (RFC 7143 §11.8).
func (s *Session) solicited(p *pdu) error {
	c := s.calls[p.tag()]
	offset, length := int(p.get32(40)), int(p.get32(44))
	if c == nil || c.command == nil || offset+length > len(c.command.Out) {
		return fmt.Errorf("an R2T for %d bytes at %d of the tag %#x", length, offset, p.tag())
	}
	for number, at := uint32(0), offset; at < offset+length; number++ {
		end := min(at+s.segment, offset+length)
		var flags byte
		if end == offset+length {
			flags = flagFinal
		}
		out := newPDU(opDataOut, flags, p.tag(), c.command.Out[at:end])
		copy(out.header[8:16], p.header[8:16])
		out.put32(20, p.get32(20))
		out.put32(28, s.expStatSN)
		out.put32(36, number)
		out.put32(40, uint32(at))
		s.send(out)
		at = end
	}
	return nil
}

// async processes an Asynchronous Message (RFC 7143 §11.9).
func (s *Session) async(p *pdu) error {
	switch event := p.header[36]; event {
	case 0, 255: // sense data, vendor specific
	case 1:
		if !s.leaving {
			s.leaving = true
			go s.logOut()
		}
	case 2, 3:
		return errors.New("the target drops the connection")
	}
	return nil
}

const logoutPatience = 2 * time.Second // for commands in progress, then for the answer

// logOut waits for commands, then logs out (RFC 7143 §11.14).
func (s *Session) logOut() {
	ctx, cancel := context.WithTimeout(context.Background(), logoutPatience)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for s.UnderWay() > 0 {
		select {
		case <-ctx.Done():
		case <-s.over:
			return
		case <-ticker.C:
			continue
		}
		break
	}
	s.mu.Lock()
	c := &call{answer: make(chan Response, 1)}
	p := newPDU(opLogout|flagImmediate, flagFinal, s.assignTag(c), nil)
	s.number(p, false)
	s.send(p)
	s.mu.Unlock()
	_, _ = s.wait(ctx, c) // the answer ends the session
	s.failed(LostAbandoned, errors.New("the target did not answer a logout"))
}

// LogOut ends the session with a logout, or after 2 s without one.
func (s *Session) LogOut() {
	s.mu.Lock()
	begun := s.leaving
	s.leaving = true
	s.mu.Unlock()
	if begun {
		<-s.over
		return
	}
	s.logOut()
}

// UnderWay returns the number of commands without an answer.
func (s *Session) UnderWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c.command != nil {
			n++
		}
	}
	return n
}

// ResetUnit is the task management function LOGICAL UNIT RESET (RFC 7143 §11.5.1).
func (s *Session) ResetUnit(ctx context.Context, lun uint16) error {
	s.mu.Lock()
	if s.lost != nil {
		s.mu.Unlock()
		return s.lost
	}
	c := &call{answer: make(chan Response, 1)}
	p := newPDU(opTask|flagImmediate, flagFinal|5, s.assignTag(c), nil)
	p.putLUN(lun)
	p.put32(20, noTag)
	s.number(p, false)
	s.send(p)
	s.mu.Unlock()
	response, err := s.wait(ctx, c)
	if err == nil && response.Status != 0 {
		err = fmt.Errorf("%s: LOGICAL UNIT RESET answered %02x", s.options.Portal, response.Status)
	}
	return err
}
