package leader

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Events records events for users. It must not block for long; it logs events that it cannot store.
type Events interface {
	Record(ctx context.Context, about model.Object, warning bool, reason, message string)
}

// noEvents drops events.
type noEvents struct{}

func (noEvents) Record(context.Context, model.Object, bool, string, string) {}
