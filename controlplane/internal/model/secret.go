package model

// Secret is text that no log line, error or dump may hold: every way to print it gives a placeholder, and only Reveal
// the text. The store encrypts it.
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string { return s.text }

// IsZero says that there is none.
func (s Secret) IsZero() bool { return s.text == "" }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return "<secret>"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText gives the placeholder, to whoever encodes an object without knowing better.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote, a placeholder, or text that a user gave.
func (s *Secret) UnmarshalText(text []byte) error {
	s.text = string(text)
	return nil
}
