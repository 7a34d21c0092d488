// Package history records the operations of clients on single blocks and their results, and judges them. Every block must behave
// as one register, on which each operation acts at one moment between its beginning and its end.
package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

// BlockSize in bytes.
const BlockSize = 512

// Value identifies the content of a block: a writer and its count. 0 is the initial content, zeros.
type Value uint64

const countBits = 40

// NewValue returns a value. Writers count from 1.
func NewValue(writer int, count uint64) Value { return Value(uint64(writer)<<countBits | count) }

func (v Value) String() string {
	if v == 0 {
		return "zeros"
	}
	return fmt.Sprintf("%d.%d", uint64(v)>>countBits, uint64(v)&(1<<countBits-1))
}

// Place is a block of a LUN.
type Place struct {
	LUN   uint16
	Block uint64
}

func (p Place) String() string { return fmt.Sprintf("LUN %d block %d", p.LUN, p.Block) }

const magic = 0x534c5549 // "SLUI"

// Encode fills a block: run, place and value in front, derived bytes up to a checksum over all. Every part of the block differs
// from the same part of any other, so that a block made of two is detected.
func (v Value) Encode(run uint64, place Place) []byte {
	block := make([]byte, BlockSize)
	if v == 0 {
		return block
	}
	binary.BigEndian.PutUint32(block, magic)
	binary.BigEndian.PutUint32(block[4:], uint32(place.LUN))
	binary.BigEndian.PutUint64(block[8:], place.Block)
	binary.BigEndian.PutUint64(block[16:], run)
	binary.BigEndian.PutUint64(block[24:], uint64(v))
	filler := rand.NewPCG(run^place.Block, uint64(v)^uint64(place.LUN)<<48)
	for at := 32; at < BlockSize-8; at += 8 {
		binary.BigEndian.PutUint64(block[at:], filler.Uint64())
	}
	binary.BigEndian.PutUint64(block[BlockSize-8:], uint64(crc32.ChecksumIEEE(block[:BlockSize-8]))<<32|magic)
	return block
}

// Errors of Decode.
var (
	ErrTorn     = errors.New("the block is torn")
	ErrMisplace = errors.New("the block belongs elsewhere")
)

// Decode returns the value in a block. Errors: ErrTorn, ErrMisplace.
func Decode(block []byte, run uint64, place Place) (Value, error) {
	if len(block) != BlockSize {
		return 0, fmt.Errorf("%w: %d bytes", ErrTorn, len(block))
	}
	v := Value(binary.BigEndian.Uint64(block[24:]))
	found := Place{uint16(binary.BigEndian.Uint32(block[4:])), binary.BigEndian.Uint64(block[8:])}
	foundRun := binary.BigEndian.Uint64(block[16:])
	if v == 0 {
		found, foundRun = place, run
	}
	if string(v.Encode(foundRun, found)) != string(block) {
		return 0, fmt.Errorf("%w: its head says %v of %v", ErrTorn, v, found)
	}
	if found != place || foundRun != run {
		return 0, fmt.Errorf("%w: %v was written to %v (run %x)", ErrMisplace, v, found, foundRun)
	}
	return v, nil
}
