package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/tests/robustness/history"
)

func someFaults(log *[]string) []*fault {
	var all []*fault
	for i := range 6 {
		name := fmt.Sprintf("f%d", i)
		all = append(all, &fault{name: name, on: fmt.Sprintf("thing %d", i/2), kind: "k", weight: 1 + i%2,
			shortest: time.Millisecond, longest: 3 * time.Second,
			do:   func(context.Context) error { *log = append(*log, "do "+name); return nil },
			undo: func(context.Context) error { *log = append(*log, "undo "+name); return nil }})
	}
	return all
}

func TestASeedPlansTheSameFaultsAgainAndAnotherSeedOthers(t *testing.T) {
	text := func(seed uint64) string { return fmt.Sprint(plan(seed, time.Minute, someFaults(nil))) }
	if first, again := text(7), text(7); first != again {
		t.Error("seed 7 twice differs")
	}
	if text(7) == text(8) {
		t.Error("seeds 7 and 8 plan the same")
	}
}

func TestFaultsOnTheSameThingDontOverlapAndAllEndInTime(t *testing.T) {
	for seed := range uint64(200) {
		busy := map[string]time.Duration{}
		seen := map[string]bool{}
		for _, p := range plan(seed, time.Minute, someFaults(nil)) {
			if p.at < busy[p.fault.on] || p.at+p.lasts > time.Minute || p.lasts < p.fault.shortest || p.lasts > p.fault.longest {
				t.Fatalf("seed %d: %v", seed, p)
			}
			busy[p.fault.on] = p.at + p.lasts
			seen[p.fault.name] = true
		}
		if len(seen) != 6 {
			t.Fatalf("seed %d: only %v", seed, seen)
		}
	}
}

func TestNoFaultOverlapsOneThatMustBeAlone(t *testing.T) {
	for seed := range uint64(200) {
		faults := someFaults(nil)
		faults[0].alone, faults[3].alone = true, true
		all := plan(seed, time.Minute, faults)
		for i, p := range all {
			for _, q := range all[:i] {
				if (p.fault.alone || q.fault.alone) && p.at < q.at+q.lasts {
					t.Fatalf("seed %d: %v begins during %v", seed, p, q)
				}
			}
		}
	}
}

func TestEveryFaultOfTwoDevicesHasRoomInTheShortestRun(t *testing.T) {
	devices := []*device{{name: "a"}, {name: "b"}}
	for seed := range uint64(500) {
		done := map[string]bool{}
		for _, p := range plan(seed, devicesDuration, isolationFaults(devices, nil)) {
			done[p.fault.name] = true
		}
		if len(done) != 2*len(deviceKinds) {
			t.Fatalf("seed %d: only %v", seed, done)
		}
	}
}

func TestAHostThatIsNotServedDuringAHangIsFound(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	since := func(t time.Time) int64 { return int64(t.Sub(began)) }
	devices := []*device{{name: "a", luns: []uint16{0}}, {name: "b", luns: []uint16{1}}}
	devices[0].spans = []span{{kind: deviceHangs, from: at(10), to: at(20)}, {kind: deviceFails, from: at(30), to: at(40)}}
	operation := func(host int, lun uint16, from, to int) history.Operation {
		return history.Operation{Client: 1 + host*clientsOfHost, Place: history.Place{LUN: lun}, Call: since(at(from)), Return: since(at(to))}
	}
	served := []history.Operation{operation(0, 1, 11, 12), operation(1, 1, 18, 19)}
	if found := notServed(devices, served, since, 2); len(found) != 0 {
		t.Error(found)
	}
	lost := operation(1, 1, 11, 12)
	lost.Maybe = true
	for name, other := range map[string]history.Operation{"began before": operation(1, 1, 9, 12), "ended after": operation(1, 1, 19, 21),
		"on the device that hangs": operation(1, 0, 11, 12), "without an answer": lost} {
		if found := notServed(devices, []history.Operation{served[0], other}, since, 2); len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestEachFaultIsUndoneAtItsTime(t *testing.T) {
	var log []string
	all := someFaults(&log)
	planned := []planned{{at: 0, lasts: 20 * time.Millisecond, fault: all[0]}, {at: 10 * time.Millisecond, lasts: 0, fault: all[2]}}
	if err := play(context.Background(), planned, t.Logf); err != nil {
		t.Fatal(err)
	}
	if want := []string{"do f0", "do f2", "undo f2", "undo f0"}; !slices.Equal(log, want) {
		t.Errorf("%v", log)
	}
}

func TestAnInterruptedRunUndoesExactlyTheFaultsThatBegan(t *testing.T) {
	var log []string
	all := someFaults(&log)
	ctx, cancel := context.WithCancel(context.Background())
	all[0].do = func(context.Context) error {
		log = append(log, "do f0")
		cancel()
		return nil
	}
	planned := []planned{{at: 0, lasts: time.Hour, fault: all[0]}, {at: time.Minute, lasts: time.Hour, fault: all[2]}}
	if err := play(ctx, planned, t.Logf); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if want := []string{"do f0", "undo f0"}; !slices.Equal(log, want) {
		t.Errorf("%v", log)
	}
}
