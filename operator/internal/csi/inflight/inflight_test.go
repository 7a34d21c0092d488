package inflight

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestASecondCallForANameIsAbortedUntilTheFirstEnds(t *testing.T) {
	var p Calls
	done, err := p.Begin("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Begin("a"); status.Code(err) != codes.Aborted {
		t.Errorf("a second call: %v", err)
	}
	other, err := p.Begin("b")
	if err != nil {
		t.Errorf("another name: %v", err)
	}
	other()
	done()
	if _, err := p.Begin("a"); err != nil {
		t.Errorf("after the first: %v", err)
	}
}
