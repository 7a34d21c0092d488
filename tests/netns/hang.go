package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const tracerInterval = 10 * time.Millisecond

// HangThread stops one thread of the process, by its name, while the others continue; Undo resumes it. The process may end
// meanwhile.
func (p *Process) HangThread(name string) (Undo, error) {
	thread, err := p.thread(name)
	if err != nil {
		return nil, err
	}
	stands, release, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		hold(thread, stands, release)
	}()
	if err := <-stands; err != nil {
		return nil, fmt.Errorf("thread %s of %s: %w", name, p.Name, err)
	}
	return func() error {
		close(release)
		<-over
		return nil
	}, nil
}

func (p *Process) thread(name string) (int, error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", p.Pid()))
	if err != nil {
		return 0, err
	}
	for _, path := range names {
		if text, err := os.ReadFile(path); err == nil && string(bytes.TrimSpace(text)) == name {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("%s has no thread %s", p.Name, name)
}

// hold traces a thread until `release`, or until the thread ends: a tracer that does not collect that end would prevent the end
// of the process.
func hold(thread int, stands chan<- error, release <-chan struct{}) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	err := unix.PtraceSeize(thread)
	if err == nil {
		err = unix.PtraceInterrupt(thread)
	}
	var status unix.WaitStatus
	if err == nil {
		_, err = unix.Wait4(thread, &status, unix.WALL, nil)
	}
	if err == nil && !status.Stopped() {
		err = errors.New("it ended")
	}
	stands <- err
	for err == nil {
		select {
		case <-release:
			for unix.PtraceDetach(thread) != nil { // it was killed just now
				if _, err := unix.Wait4(thread, &status, unix.WALL, nil); err != nil || !status.Stopped() {
					return
				}
			}
			return
		case <-time.After(tracerInterval):
		}
		if got, err := unix.Wait4(thread, &status, unix.WALL|unix.WNOHANG, nil); err != nil || (got == thread && !status.Stopped()) {
			<-release
			return
		}
	}
}
