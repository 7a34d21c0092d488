package leader

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/model"
)

// Events keeps what people are told. It must not block for long; what it cannot keep it logs.
type Events interface {
	Record(ctx context.Context, about model.Object, warning bool, reason, message string)
}

// noEvents drops them.
type noEvents struct{}

func (noEvents) Record(context.Context, model.Object, bool, string, string) {}
