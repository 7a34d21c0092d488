package model

import "errors"

// MaxReservationState bounds the stored reservations of a volume, in bytes.
const MaxReservationState = 1 << 20

// Reservations are a volume's persistent reservations. Gateways define the encoding of State. Each commit increments Generation.
type Reservations struct {
	Generation uint64 `json:"generation"`
	State      []byte `json:"state"`
}

// Errors of a commit. After either, nothing was stored.
var (
	// ErrFenced: the volume's epoch is another one (R4).
	ErrFenced = errors.New("the volume's epoch has moved on")
	// ErrGeneration: the stored generation is not the expected one.
	ErrGeneration = errors.New("the reservations' generation is another one")
)
