package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that is started, killed, stopped and started again. Only its pid identifies it.
type Process struct {
	Name string
	// Node is the network namespace in which it runs; empty: the program's own.
	Node string
	// Arguments, the program first.
	Arguments []string
	// Environment variables in addition to those of this program.
	Environment []string
	// Log is the file to which its output is appended.
	Log string

	mu      sync.Mutex
	command *exec.Cmd
	done    chan struct{}
	killed  bool
	status  string
	// unexpected has the ends of it that this program did not request.
	unexpected []string
}

// Start starts the process, which must not be running.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("%s is running", p.Name)
	}
	log, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	words := p.Arguments
	if p.Node != "" { // ip replaces itself by the program, so the pid is the program's
		words = append([]string{"ip", "netns", "exec", p.Node}, words...)
	}
	command := exec.Command(words[0], words[1:]...)
	command.Env = append(os.Environ(), p.Environment...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.command, p.done, p.killed = command, done, false
	go p.wait(command, done)
	return nil
}

const logTailLines = 25 // lines of the log

func (p *Process) wait(command *exec.Cmd, done chan struct{}) {
	_ = command.Wait() // the state has more information
	last := p.LogTail(logTailLines)
	p.mu.Lock()
	p.status = command.ProcessState.String()
	if !p.killed {
		p.unexpected = append(p.unexpected, p.status+"; its log ends:\n"+last)
	}
	p.mu.Unlock()
	close(done)
}

// running reports whether it runs. The caller holds the lock.
func (p *Process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running reports whether it runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// Unexpected returns the ends that this program did not request: the status, then the end of the log at that time.
func (p *Process) Unexpected() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.unexpected...)
}

// Done is closed when the present run ends; nil before the first.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Signal sends a signal to the process.
func (p *Process) Signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("%s does not run (%s)", p.Name, p.status)
	}
	return p.command.Process.Signal(signal)
}

// Freeze stops it by SIGSTOP, and returns once all its threads are stopped. SIGCONT resumes it.
func (p *Process) Freeze(ctx context.Context) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return Until(ctx, func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // it has ended
			}
			// pid (name) state ...; a name may contain any character
			if after := text[bytes.LastIndexByte(text, ')')+1:]; len(after) > 1 && after[1] != 'T' {
				return fmt.Errorf("%s: a thread goes on in state %c", p.Name, after[1])
			}
		}
		return nil
	})
}

// Pid returns the pid of the present run, or of the last one.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return 0
	}
	return p.command.Process.Pid
}

// Kill ends it by SIGKILL and waits for its end. It may have ended already.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, 10*time.Second) }

// Stop ends it by SIGTERM, and after `patience` by SIGKILL, which is an error.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.end(syscall.SIGTERM, patience); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

func (p *Process) end(signal syscall.Signal, patience time.Duration) error {
	p.mu.Lock()
	if !p.running() {
		p.mu.Unlock()
		return nil
	}
	p.killed = true
	done := p.done
	err := p.command.Process.Signal(signal)
	p.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s still runs %v after %v", p.Name, patience, signal)
	}
}

// LogTail returns the end of its log.
func (p *Process) LogTail(lines int) string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
