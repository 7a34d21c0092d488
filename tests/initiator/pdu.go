package initiator

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Opcodes, RFC 7143 §11.2.1.2.
const (
	opNopOut          = 0x00
	opCommand         = 0x01
	opTask            = 0x02
	opLogin           = 0x03
	opText            = 0x04
	opDataOut         = 0x05
	opLogout          = 0x06
	opNopIn           = 0x20
	opCommandResponse = 0x21
	opTaskResponse    = 0x22
	opLoginResponse   = 0x23
	opTextResponse    = 0x24
	opDataIn          = 0x25
	opLogoutResponse  = 0x26
	opR2T             = 0x31
	opAsync           = 0x32
	opReject          = 0x3f

	flagImmediate = 0x40
	flagFinal     = 0x80
	noTag         = 0xffffffff

	headerSize = 48
	maxSegment = 256 << 10 // the declared MaxRecvDataSegmentLength, and the accepted maximum
)

// pdu is a header with its data. Additional headers and digests are not used.
type pdu struct {
	header [headerSize]byte
	data   []byte
}

func newPDU(opcode, flags byte, tag uint32, data []byte) *pdu {
	p := &pdu{data: data}
	p.header[0], p.header[1] = opcode, flags
	p.header[5], p.header[6], p.header[7] = byte(len(data)>>16), byte(len(data)>>8), byte(len(data))
	p.put32(16, tag)
	return p
}

func (p *pdu) opcode() byte               { return p.header[0] & 0x3f }
func (p *pdu) flags() byte                { return p.header[1] }
func (p *pdu) tag() uint32                { return p.get32(16) }
func (p *pdu) get32(at int) uint32        { return binary.BigEndian.Uint32(p.header[at:]) }
func (p *pdu) put32(at int, value uint32) { binary.BigEndian.PutUint32(p.header[at:], value) }

// putLUN writes a LUN (SAM-5 §4.7): peripheral addressing below 256, flat space above.
func (p *pdu) putLUN(lun uint16) {
	if lun >= 256 {
		lun |= 0x4000
	}
	binary.BigEndian.PutUint16(p.header[8:], lun)
}

func (p *pdu) bytes() []byte {
	padded := (len(p.data) + 3) &^ 3
	out := make([]byte, headerSize+padded)
	copy(out, p.header[:])
	copy(out[headerSize:], p.data)
	return out
}

func readPDU(from io.Reader) (*pdu, error) {
	p := &pdu{}
	if _, err := io.ReadFull(from, p.header[:]); err != nil {
		return nil, err
	}
	size := int(p.header[5])<<16 | int(p.header[6])<<8 | int(p.header[7])
	if size > maxSegment || p.header[4] != 0 {
		return nil, fmt.Errorf("a PDU %#02x with %d bytes of data and %d words of headers: more than was declared",
			p.opcode(), size, p.header[4])
	}
	padded := make([]byte, (size+3)&^3)
	if _, err := io.ReadFull(from, padded); err != nil {
		return nil, err
	}
	p.data = padded[:size]
	return p, nil
}

// serialAfter reports whether a is later than b (RFC 1982, 32 bits).
func serialAfter(a, b uint32) bool { return int32(a-b) > 0 }
