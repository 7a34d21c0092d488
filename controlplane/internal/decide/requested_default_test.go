package decide_test

import (
	"testing"

	"sluice.dev/sluice/controlplane/internal/model"
)

func TestAMoveWithoutAGatewayGoesToAnotherThanTheOwner(t *testing.T) {
	v := known(2)
	exported(v, atOne, true)
	requested(v, 0)
	settle(t, v, start)
	if ownership := v.Volumes["v"].Status.Ownership; ownership.State != model.Moving || ownership.Next != ref(2) {
		t.Errorf("%+v", ownership)
	}
}
