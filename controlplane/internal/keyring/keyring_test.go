package keyring

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAKeyFileIsForItsOwnerAloneOrOfRootForAGroup(t *testing.T) {
	const another = 65532
	cases := []struct {
		mode os.FileMode
		user int // the user who reads it
		want bool
	}{
		{0o600, os.Getuid(), true}, {0o400, os.Getuid(), true}, {0o640, os.Getuid(), false}, {0o604, os.Getuid(), false},
	}
	if os.Getuid() == 0 { // the file belongs to root, as a Secret in a pod does
		cases = append(cases, []struct {
			mode os.FileMode
			user int
			want bool
		}{{0o440, another, true}, {0o640, another, true}, {0o460, another, false}, {0o444, another, false}}...)
	}
	path := filepath.Join(t.TempDir(), "secrets.key")
	if err := os.WriteFile(path, []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := private(info, c.user); got != c.want {
			t.Errorf("mode %#o, read by user %d: private %v, want %v", c.mode, c.user, got, c.want)
		}
	}
}

func TestTheTextOfAKeyringIsItsKeyFileWithoutComments(t *testing.T) {
	first, second := GenerateKey("b"), GenerateKey("a")
	ring, err := Parse("# comment\n" + first + "\n" + second)
	if err != nil || ring.Text() != first+second {
		t.Errorf("got %v, want the two lines in their order (%v)", ring.Text() == first+second, err)
	}
}
