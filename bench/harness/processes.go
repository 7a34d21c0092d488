package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Resident returns a process's memory, in bytes. PSS counts only its part of shared memory.
func Resident(pid int) (rss, pss int64, err error) {
	found, err := rollup(pid)
	if err != nil {
		return 0, 0, err
	}
	return found["Rss:"], found["Pss:"], nil
}

func rollup(pid int) (map[string]int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return nil, err
	}
	return parseRollup(string(text))
}

// parseRollup reads bytes from /proc/PID/smaps_rollup (proc(5)).
func parseRollup(text string) (map[string]int64, error) {
	found := map[string]int64{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 3 && words[2] == "kB" {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				found[words[0]] = n << 10
			}
		}
	}
	if found["Rss:"] == 0 || found["Pss:"] == 0 {
		return nil, errors.New("smaps_rollup has no Rss or Pss: is the process gone?")
	}
	return found, nil
}

// CPU returns the CPU time of all threads of processes (proc(5), schedstat).
func CPU(pids []int) (time.Duration, error) {
	var total time.Duration
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, err
		}
		if len(threads) == 0 {
			return 0, fmt.Errorf("process %d is gone", pid)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // it has ended
			}
			spent, err := onCPU(string(text))
			if err != nil {
				return 0, fmt.Errorf("%s: %w", thread, err)
			}
			total += spent
		}
	}
	return total, nil
}

func onCPU(schedstat string) (time.Duration, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(schedstat), " ")
	spent, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(spent), err
}

// Pin pins all threads of a process to one core.
func Pin(pid, core int) error {
	return command("taskset", "-a", "-c", "-p", strconv.Itoa(core), strconv.Itoa(pid))
}
