package netns

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// A thread that is killed just before its tracer resumes it is no longer stopped, and cannot be resumed. If the tracer does not
// collect its end, the process cannot end.
func TestTheEndOfAThreadIsNotedThatIsKilledJustBeforeItIsReleased(t *testing.T) {
	for range 20 {
		pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "600"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		stands, release, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			hold(pid, stands, release)
		}()
		if err := <-stands; err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		close(release)
		<-over
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Fatalf("process %d was released after its end, which nothing had noticed", pid)
		}
	}
}
