package model

// Secret is text that no log line, error or dump may contain. Every way to print it yields a placeholder; only Reveal returns the
// text. The store encrypts it.
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text, for the code that sends, encrypts or compares it.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether the secret is empty.
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

// MarshalText returns the placeholder, so that an encoder of an object never writes the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a placeholder that MarshalText wrote, or text that a user entered.
func (s *Secret) UnmarshalText(text []byte) error {
	s.text = string(text)
	return nil
}
