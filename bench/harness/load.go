package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// Load is the load of one client: a process of iscsi-load.
type Load struct {
	// Node is the network namespace of the client; empty: the program's own.
	Node string
	// Portal, `host:port`, IPv4.
	Portal            string
	Target, Initiator string
	// Bare: the portal is that of a bare echo, whose null store is read and written.
	Bare            bool
	LUN             int
	Op              string // read or write
	Size            int    // bytes per command
	Depth, Sessions int
	Sequential      bool
	Span            int64 // bytes of the LUN in use
	Warmup, Seconds float64
	// Watch are processes whose CPU use is reported, as a sum.
	Watch []int
	// Core to which the client is pinned, if Pinned.
	Core   int
	Pinned bool
}

// Result is the report of a client.
type Result struct {
	IOPS       float64 `json:"iops"`
	MBPerS     float64 `json:"mb_per_s"`
	Errors     int     `json:"errors"`
	FirstError string  `json:"first_error"`
	TargetCPU  float64 `json:"target_cpu"` // seconds per second
	// Shares of the window in which target and client were runnable, and had no core.
	TargetWait float64 `json:"target_wait"`
	ClientWait float64 `json:"client_wait"`
	Latency    struct {
		Mean float64 `json:"mean"`
		P99  float64 `json:"p99"`
	} `json:"latency_us"`
	Agreed map[string]any `json:"agreed"`
}

func (b *Bench) arguments(l Load) ([]string, error) {
	host, port, cut := strings.Cut(l.Portal, ":")
	if !cut {
		return nil, fmt.Errorf("%q is no portal: host:port", l.Portal)
	}
	var words []string
	if l.Node != "" {
		words = []string{"ip", "netns", "exec", l.Node}
	}
	if l.Pinned {
		words = append(words, "taskset", "-c", strconv.Itoa(l.Core))
	}
	pattern := map[bool]string{true: "sequential", false: "random"}[l.Sequential]
	words = append(words, b.Client+"/iscsi-load", "--address", host, "--port", port, "--target", l.Target, "--initiator", l.Initiator,
		"--lun", strconv.Itoa(l.LUN), "--op", l.Op, "--size", strconv.Itoa(l.Size), "--depth", strconv.Itoa(l.Depth),
		"--sessions", strconv.Itoa(max(1, l.Sessions)), "--pattern", pattern, "--span", strconv.FormatInt(l.Span, 10),
		"--warmup", fmt.Sprint(l.Warmup), "--seconds", fmt.Sprint(l.Seconds), "--wait", "sleep", "--discard")
	if l.Bare {
		words = append(words, "--protocol", "bare", "--store", "null")
	}
	if len(l.Watch) > 0 {
		var pids []string
		for _, pid := range l.Watch {
			pids = append(pids, strconv.Itoa(pid))
		}
		words = append(words, "--watch-pid", strings.Join(pids, ","))
	}
	return words, nil
}

// Drive runs all clients concurrently, and returns their reports.
func (b *Bench) Drive(ctx context.Context, loads []Load) ([]Result, error) {
	results, failed := make([]Result, len(loads)), make([]error, len(loads))
	var all sync.WaitGroup
	for i, load := range loads {
		words, err := b.arguments(load)
		if err != nil {
			return nil, err
		}
		all.Go(func() { results[i], failed[i] = drive(ctx, words) })
	}
	all.Wait()
	return results, errors.Join(failed...)
}

func drive(ctx context.Context, words []string) (Result, error) {
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	text, failed := command.Output()
	var result Result
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("%s: %w: %s", strings.Join(words, " "), errors.Join(failed, err), complaint.String())
	}
	if result.Errors > 0 {
		return result, fmt.Errorf("%s: %d errors, the first: %s", strings.Join(words, " "), result.Errors, result.FirstError)
	}
	return result, nil
}

// Sum combines the results of clients. All of them watched the same processes, in nearly the same windows: the processes' CPU use
// is the mean of their observations, divided by all commands.
func Sum(results []Result) map[string]float64 {
	var iops, bytes, cpu, latency, p99, least, noise float64
	for i, r := range results {
		iops += r.IOPS
		bytes += r.MBPerS * 1e6
		cpu += r.TargetCPU / float64(len(results))
		latency += r.Latency.Mean * r.IOPS
		p99 = max(p99, r.Latency.P99)
		noise = max(noise, r.TargetWait+r.ClientWait)
		if rate := r.MBPerS * 1e6; i == 0 || rate < least {
			least = rate
		}
	}
	figures := map[string]float64{"iops": iops, "bytes_per_second": bytes, "slowest_client_bytes_per_second": least,
		"latency_p99_s": p99 / 1e6, "noise_share": noise}
	if iops > 0 {
		figures["latency_mean_s"] = latency / iops / 1e6
		if cpu > 0 {
			figures["target_cpu_s_per_command"] = cpu / iops
		}
	}
	return figures
}

// Negotiated returns the keys of a session, as text.
func (r Result) Negotiated() map[string]string {
	keys := map[string]string{}
	for key, value := range r.Agreed {
		keys[key] = fmt.Sprint(value)
	}
	return keys
}
