package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// hostName names this program among the processes: the host with its clients, and the watch of the owners.
const hostName = "host"

// usage is the processor time of each process so far.
type usage map[string]time.Duration

// usage returns that of all running processes.
func (b *bench) usage() usage {
	all := usage{}
	note := func(name string, pid int) {
		if took, err := processorTime(pid); err == nil { // otherwise it has ended meanwhile
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

// processorTime returns the time of all threads of a process, including ended ones, in nanoseconds; /proc has hundredths of a
// second.
func processorTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED; the clock's number is how the kernel encodes a process's (clock_getcpuclockid)
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &at); err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// since returns the time of each process since `before`, in seconds. A process that did not run at both times is left out.
func (u usage) since(before usage) map[string]float64 {
	took := map[string]float64{}
	for name, now := range u {
		if was, ran := before[name]; ran && now >= was {
			took[name] = (now - was).Seconds()
		}
	}
	return took
}
