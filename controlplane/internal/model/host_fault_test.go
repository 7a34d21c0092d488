package model

import (
	"fmt"
	"testing"
	"time"
)

func TestAHostFaultLastsAsLongAsItIsReported(t *testing.T) {
	var r HostFaultReport
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	fault := HostFault{Kind: HostLoginRefused, Initiator: "a", Reason: "x", Count: 2}
	other := HostFault{Kind: HostLoginRefused, Initiator: "b", Count: 1}
	now := began
	for range 6 {
		r.Merge([]HostFault{fault}, now)
		now = now.Add(10 * time.Second)
	}
	if len(r.Faults) != 1 || r.Faults[0].Count != 12 || !r.Faults[0].First.Equal(began) || !r.Faults[0].Last.Equal(began.Add(50*time.Second)) {
		t.Fatalf("%+v", r)
	}
	last := r.Faults[0].Last
	if !r.Faults[0].PresentAt(last.Add(HostFaultShownFor-1)) || r.Faults[0].PresentAt(last.Add(HostFaultShownFor)) {
		t.Error("it does not end with its time")
	}
	r.Merge([]HostFault{other}, last.Add(HostFaultShownFor-1))
	if len(r.Faults) != 2 {
		t.Errorf("a fault was lost: %+v", r)
	}
	r.Merge([]HostFault{fault}, last.Add(HostFaultShownFor))
	if len(r.Faults) != 2 || !r.Faults[0].First.Equal(last.Add(HostFaultShownFor)) || r.Faults[0].Count != 2 {
		t.Errorf("an ended fault continued: %+v", r)
	}
}

func TestStoredHostFaultsAreBounded(t *testing.T) {
	var r HostFaultReport
	now := time.Now()
	for i := range 1000 {
		r.Merge([]HostFault{{Initiator: fmt.Sprint(i)}}, now.Add(time.Duration(i)*time.Millisecond))
	}
	if len(r.Faults) != MaxHostFaults || r.Faults[0].Initiator != "999" {
		t.Errorf("%d faults, first %+v", len(r.Faults), r.Faults[0])
	}
}

func TestTextsOfPeersAreBoundedAndPrintable(t *testing.T) {
	if got := Sanitized("iqn\n\x1b[2J\xffé", 9); got != "iqn??[2J?" {
		t.Errorf("%q", got)
	}
}
