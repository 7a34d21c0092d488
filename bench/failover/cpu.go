package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hostName is this program among processes: the host with its clients, and whoever follows the owners for it.
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

// processorTime of all threads of a process, those that have ended included, to the nanosecond; /proc tells it by the hundredth of
// a second.
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

// parts of the cluster whose processes are told together.
var parts = []string{"control plane", "gateways", hostName}

func partOf(process string) string {
	switch {
	case strings.HasPrefix(process, "gw-"):
		return "gateways"
	case process == hostName:
		return hostName
	}
	return "control plane" // and etcd
}

// costs are the milliseconds of a processor that each volume struck took of each part, beyond what it takes undisturbed.
func (r record) costs() map[string]float64 {
	each := map[string]float64{}
	for process, seconds := range r.CPU {
		each[partOf(process)] += max(0, seconds-r.Calm[process]) * 1000 / float64(max(r.Struck, 1))
	}
	return each
}

// work tells what a fault costs in processor time: where the processors are few, that is what the last of many volumes waits for.
func work(all []group) string {
	var text strings.Builder
	for _, g := range all {
		if len(g.costs) == 0 {
			continue
		}
		if text.Len() == 0 {
			text.WriteString("\n## Processor time\n\nFrom the fault until all go on, for each volume struck, beyond what each part takes " +
				"undisturbed; medians in ms. etcd is the control plane's, and the gateway that was killed is in nothing.\n\n" +
				"| fault | LUNs | struck | " + strings.Join(parts, " | ") + " |\n|" + strings.Repeat("---|", 3+len(parts)) + "\n")
		}
		fmt.Fprintf(&text, "| %s | %d | %d |", g.kind, g.luns, g.struck)
		for _, part := range parts {
			var values []float64
			for _, costs := range g.costs {
				values = append(values, costs[part])
			}
			slices.Sort(values)
			fmt.Fprintf(&text, " %.3f |", quantile(values, 0.5))
		}
		text.WriteString("\n")
	}
	return text.String()
}
