package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// hostName is this program among processes: the host with its clients, and the watch of the owners.
const hostName = "host"

// usage is the processor time that each process has taken so far.
type usage map[string]time.Duration

// usage of all processes that run.
func (b *bench) usage() usage {
	all := usage{}
	note := func(name string, pid int) {
		if took, err := processorTime(pid); err == nil { // else it has ended meanwhile
			all[name] = took
		}
	}
	for _, p := range b.Processes() {
		if p.Running() {
			note(p.Name, p.Pid())
		}
	}
	note(hostName, os.Getpid())
	return all
}

// processorTime of all threads of a process, including ended ones, to the nanosecond; /proc has it in hundredths of a second.
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED; the clock's number is how the kernel encodes a process's (clock_getcpuclockid)
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &at); err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// since says how much each process has taken since it had taken `before`, in seconds; those that ran at both times.
func (u usage) since(before usage) map[string]float64 {
	took := map[string]float64{}
	for name, now := range u {
		if was, ran := before[name]; ran && now >= was {
			took[name] = (now - was).Seconds()
		}
	}
	return took
}
