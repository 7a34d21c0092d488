package api

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
	pb "sluice.dev/sluice/proto/sluice/v1"
)

func TestWatchersOfLoadsShareAMeasurementForHalfAnInterval(t *testing.T) {
	shared, measured := sharedLoads{}, 0
	measure := func(kind string, _ time.Time) []*pb.Load {
		measured++
		return []*pb.Load{{Object: &pb.ObjectReference{Kind: kind}}}
	}
	first := shared.of("Volume", received, measure)
	again := shared.of("Volume", received.Add(model.LiveLoadInterval/2-1), measure)
	if measured != 1 || first[0] != again[0] {
		t.Errorf("%d measurements for two watchers", measured)
	}
	if other := shared.of("Host", received, measure); measured != 2 || other[0].GetObject().GetKind() != "Host" {
		t.Errorf("another kind: %d measurements, %v", measured, other)
	}
	if later := shared.of("Volume", received.Add(model.LiveLoadInterval/2), measure); measured != 3 || later[0] == first[0] {
		t.Errorf("%d measurements after half an interval", measured)
	}
}

func TestAMeasurementIsSentInMessagesOfOneThousandLoads(t *testing.T) {
	for count, want := range map[int][]int{0: {0}, 1: {1}, 1000: {1000}, 2001: {1000, 1000, 1}} {
		loads := make([]*pb.Load, count)
		for i := range loads {
			loads[i] = &pb.Load{Object: &pb.ObjectReference{Name: fmt.Sprint(i)}}
		}
		messages := loadMessages(loads)
		if len(messages) != len(want) {
			t.Fatalf("%d loads: %d messages", count, len(messages))
		}
		for i, message := range messages {
			if len(message.GetLoads()) != want[i] || message.GetMore() != (i < len(want)-1) {
				t.Errorf("%d loads: message %d has %d, more: %v", count, i, len(message.GetLoads()), message.GetMore())
			}
		}
	}
}
