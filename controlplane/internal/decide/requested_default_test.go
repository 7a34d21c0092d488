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
	if is := v.Volumes["v"].Status.Ownership; is.State != model.Moving || is.Next != ref(2) {
		t.Errorf("%+v", is)
	}
}
