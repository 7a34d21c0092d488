package model_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestAHeldMoveNamesItsGatewayOrTheNumberOfADeletedOne(t *testing.T) {
	names := model.GatewayNames{7: "gw-b"}
	for number, want := range map[uint32]string{7: "move to gateway gw-b", 8: "move to gateway number 8", 0: "move to another gateway"} {
		v := &model.Volume{}
		v.Status.MoveRequest = &model.MoveRequest{Gateway: number}
		if !v.Hold(time.Unix(1, 0), names) || !slices.Equal(v.Status.Held, []string{want}) {
			t.Errorf("gateway %d: %q, want %q", number, v.Status.Held, want)
		}
	}
}
