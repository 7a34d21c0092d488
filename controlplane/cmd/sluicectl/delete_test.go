package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal. What the test writes to the first result is typed on it.
func terminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

// answered runs a command on a terminal on which the answer is typed, and returns its output and its error.
func (l *live) answered(answer string, arguments ...string) (string, error) {
	l.t.Helper()
	keyboard, screen := terminal(l.t)
	if _, err := io.WriteString(keyboard, answer+"\n"); err != nil {
		l.t.Fatal(err)
	}
	r := l.beginWithInput(l.t.Context(), screen, arguments...)
	err := <-r.ended
	return r.out.String() + r.err.String(), err
}

func TestAnObjectInUseIsDeletedOnlyAfterAConfirmation(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("target", "create", "unused", "--host", "web")
	const use = "target shop is used by sessions gw-1.1.00023d000001 (host web to target shop), gw-1.2.00023d000001 (host web to target shop)"
	_, err := l.run("target", "delete", "unused", "shop")
	if exitCode(err) != exitNotNow || !strings.Contains(reported(err), use+"; nothing was done, because there is no terminal to ask on: --yes") {
		t.Errorf("without a terminal: %v", err)
	}
	for _, answer := range []string{"", "n", "no", "what?"} {
		out, err := l.answered(answer, "target", "delete", "unused", "shop")
		if exitCode(err) != exitOther || !strings.Contains(out, use+"\nContinue? [y/N] ") || strings.Contains(out, "deleted") {
			t.Errorf("answer %q: %v: %s", answer, err, out)
		}
	}
	if out := l.must("target", "delete", "unused", "shop", "--dry-run"); strings.Count(out, "is being deleted (dry run") != 2 {
		t.Error(out)
	}
	if out := l.must("target", "list"); strings.Count(out, "\n") != 3 {
		t.Errorf("something was deleted: %s", out)
	}
	if out := l.must("target", "delete", "unused"); out != "target unused is being deleted\n" {
		t.Errorf("an unused target: %s", out)
	}
	if out, err := l.answered("y", "target", "delete", "shop"); err != nil || !strings.Contains(out, "target shop is being deleted\n") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := l.run("gateway", "delete", "gw-1"); exitCode(err) != exitNotNow || !strings.Contains(reported(err), "gateway gw-1 is used by sessions") {
		t.Errorf("%v: %s", err, out)
	}
	if out := l.must("gateway", "delete", "gw-2"); out != "gateway gw-2 is being deleted\n" {
		t.Error(out)
	}
	if out := l.must("gateway", "delete", "gw-1", "--yes"); out != "gateway gw-1 is being deleted\n" {
		t.Error(out)
	}
}

func TestAHostWithSessionsIsDeletedOnlyAfterAConfirmation(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	l.must("target", "remove-host", "shop", "web")
	if _, err := l.run("host", "delete", "web"); exitCode(err) != exitNotNow || !strings.Contains(reported(err), "host web is used by sessions") {
		t.Error(err)
	}
	if out := l.must("host", "delete", "web", "--yes"); out != "host web deleted\n" {
		t.Error(out)
	}
}

// The control plane refuses these, so a confirmation would be useless.
func TestAnObjectThatAnotherOneNamesIsNotDeletedAndTheMessageNamesThat(t *testing.T) {
	l := start(t)
	l.prerequisites()
	l.shop()
	for object, user := range map[string]string{"volume orders": "Target shop", "pool nvme": "Volume orders", "gatewaypool default": "Gateway gw-1",
		"fabric red": "Gateway gw-1"} {
		arguments := append([]string{strings.Fields(object)[0], "delete"}, strings.Fields(object)[1:]...)
		for _, more := range []string{"--yes", "--yes=false"} {
			_, err := l.run(append(arguments, more)...)
			if exitCode(err) != exitNotNow || !strings.Contains(reported(err), "is in use by "+user) {
				t.Errorf("%s %s: %v", object, more, err)
			}
		}
	}
}
