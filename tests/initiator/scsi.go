package initiator

import (
	"encoding/binary"
	"fmt"
)

// Command is a SCSI command to one LUN.
type Command struct {
	LUN uint16
	CDB []byte
	// In is the expected number of data bytes, Out the data that is sent; at most one of them is set.
	In  int
	Out []byte
	// Writes: it may change the medium, so a retry must not be overtaken by its original (DESIGN R6).
	Writes bool
	// Exact: if it is answered with 02/04/0A it has certainly not been executed. A WRITE may have been, by an owner that has died
	// since. For an ambiguous COMPARE AND WRITE the connection is dropped instead (R6).
	Exact bool
}

// Status codes, SAM-5 §5.3.1.
const (
	StatusGood                = 0x00
	StatusCheckCondition      = 0x02
	StatusBusy                = 0x08
	StatusReservationConflict = 0x18
	StatusTaskSetFull         = 0x28
	StatusTaskAborted         = 0x40
)

// Sense keys, SPC-5 §4.4.8.
const (
	SenseNotReady       = 0x2
	SenseMediumError    = 0x3
	SenseIllegalRequest = 0x5
	SenseUnitAttention  = 0x6
	SenseDataProtect    = 0x7
	SenseAborted        = 0xb
	SenseMiscompare     = 0xe
)

// Sense is the key with additional sense code and qualifier.
type Sense struct{ Key, Code, Qualifier byte }

func (s Sense) String() string { return fmt.Sprintf("%02x/%02x/%02x", s.Key, s.Code, s.Qualifier) }

// Response is the answer to a command.
type Response struct {
	Status byte
	Data   []byte
	Sense  Sense
}

func (r Response) String() string {
	if r.Status == StatusCheckCondition {
		return "sense " + r.Sense.String()
	}
	return fmt.Sprintf("status %02x", r.Status)
}

// decodeSense reads fixed and descriptor format (SPC-5 §4.4).
func decodeSense(data []byte) Sense {
	if len(data) < 2 { // the length precedes it, RFC 7143 §11.4.7.2
		return Sense{}
	}
	data = data[2:]
	switch {
	case len(data) >= 14 && data[0]&0x7f <= 0x71:
		return Sense{data[2] & 0xf, data[12], data[13]}
	case len(data) >= 4 && data[0]&0x7f >= 0x72:
		return Sense{data[1] & 0xf, data[2], data[3]}
	}
	return Sense{}
}

func blockCDB(opcode byte, block uint64, count uint32) []byte {
	cdb := make([]byte, 16)
	cdb[0] = opcode
	binary.BigEndian.PutUint64(cdb[2:], block)
	binary.BigEndian.PutUint32(cdb[10:], count)
	return cdb
}

// Read is READ (16).
func Read(lun uint16, block uint64, blocks, blockSize int) Command {
	return Command{LUN: lun, CDB: blockCDB(0x88, block, uint32(blocks)), In: blocks * blockSize}
}

// Write is WRITE (16).
func Write(lun uint16, block uint64, data []byte, blockSize int) Command {
	return Command{LUN: lun, CDB: blockCDB(0x8a, block, uint32(len(data)/blockSize)), Out: data, Writes: true}
}

// CompareAndWrite is COMPARE AND WRITE of one block.
func CompareAndWrite(lun uint16, block uint64, old, replacement []byte) Command {
	cdb := blockCDB(0x89, block, 0)
	cdb[13] = 1
	return Command{LUN: lun, CDB: cdb, Out: append(append([]byte(nil), old...), replacement...), Writes: true, Exact: true}
}

// TestUnitReady is TEST UNIT READY.
func TestUnitReady(lun uint16) Command { return Command{LUN: lun, CDB: make([]byte, 6)} }

// Inquiry is INQUIRY; page -1 is the standard data, others are VPD pages.
func Inquiry(lun uint16, page int) Command {
	cdb := []byte{0x12, 0, 0, 1, 0, 0}
	if page >= 0 {
		cdb[1], cdb[2] = 1, byte(page)
	}
	return Command{LUN: lun, CDB: cdb, In: 256}
}

// ReadCapacity is READ CAPACITY (16).
func ReadCapacity(lun uint16) Command {
	cdb := make([]byte, 16)
	cdb[0], cdb[1], cdb[13] = 0x9e, 0x10, 32
	return Command{LUN: lun, CDB: cdb, In: 32}
}

// ReportTargetPortGroups is REPORT TARGET PORT GROUPS.
func ReportTargetPortGroups(lun uint16) Command {
	cdb := make([]byte, 12)
	cdb[0], cdb[1], cdb[8] = 0xa3, 0x0a, 0x10
	return Command{LUN: lun, CDB: cdb, In: 4096}
}

// ReservationKeys is PERSISTENT RESERVE IN, READ KEYS.
func ReservationKeys(lun uint16) Command {
	return Command{LUN: lun, CDB: []byte{0x5e, 0, 0, 0, 0, 0, 0, 0x10, 0, 0}, In: 4096}
}

// Service actions of PERSISTENT RESERVE OUT, SPC-5 table 221.
const (
	PRRegister          = 0x00
	PRReserve           = 0x01
	PRRelease           = 0x02
	PRPreempt           = 0x04
	PRRegisterAndIgnore = 0x06
)

// WriteExclusiveRegistrantsOnly is a type of reservation, SPC-5 table 65.
const WriteExclusiveRegistrantsOnly = 0x05

// PersistentReserve is PERSISTENT RESERVE OUT.
func PersistentReserve(lun uint16, action, kind byte, key, serviceKey uint64) Command {
	list := make([]byte, 24)
	binary.BigEndian.PutUint64(list, key)
	binary.BigEndian.PutUint64(list[8:], serviceKey)
	return Command{LUN: lun, CDB: []byte{0x5f, action, kind, 0, 0, 0, 0, 0, byte(len(list)), 0}, Out: list, Writes: true}
}

// AccessState is the asymmetric access state of a port group (SPC-5 table 310).
type AccessState byte

// States that Sluice reports (DESIGN R11).
const (
	Optimized     AccessState = 0x0
	NonOptimized  AccessState = 0x1
	Unavailable   AccessState = 0x3
	Transitioning AccessState = 0xf
)

func (s AccessState) String() string {
	switch s {
	case Optimized:
		return "optimized"
	case NonOptimized:
		return "non-optimized"
	case Unavailable:
		return "unavailable"
	case Transitioning:
		return "transitioning"
	}
	return fmt.Sprintf("state %x", byte(s))
}

// ParsePortGroups reads REPORT TARGET PORT GROUPS: the state of each group.
func ParsePortGroups(data []byte) (map[uint16]AccessState, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("port groups in %d bytes", len(data))
	}
	rest := data[4:]
	if length := int(binary.BigEndian.Uint32(data)); length < len(rest) {
		rest = rest[:length]
	}
	groups := map[uint16]AccessState{}
	for len(rest) >= 8 {
		groups[binary.BigEndian.Uint16(rest[2:])] = AccessState(rest[0] & 0xf)
		size := 8 + 4*int(rest[7])
		if size > len(rest) {
			return nil, fmt.Errorf("a port group of %d ports in %d bytes", rest[7], len(rest))
		}
		rest = rest[size:]
	}
	return groups, nil
}

// parsePortGroup returns the port's own group from VPD page 83h (SPC-5 §7.7.6.10).
func parsePortGroup(page []byte) (uint16, error) {
	if len(page) < 4 || page[1] != 0x83 {
		return 0, fmt.Errorf("no VPD page 83h")
	}
	rest := page[4:]
	for len(rest) >= 4 && len(rest) >= 4+int(rest[3]) {
		if rest[1]&0xf == 5 && rest[3] >= 4 {
			return binary.BigEndian.Uint16(rest[6:]), nil
		}
		rest = rest[4+int(rest[3]):]
	}
	return 0, fmt.Errorf("no target port group in VPD page 83h")
}
