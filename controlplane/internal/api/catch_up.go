package api

import (
	"context"

	"sluice.dev/sluice/controlplane/internal/store"
	"sluice.dev/sluice/controlplane/internal/view"
)

// catchUp waits until the view has everything that is stored now, because the caller may have changed something just before. It waits for
// a limited time: if etcd does not answer, the answer is that of the view.
func catchUp(ctx context.Context, s *store.Store, v *view.Cache) {
	ctx, cancel := context.WithTimeout(ctx, currentLimit)
	defer cancel()
	if version, err := s.Revision(ctx); err == nil {
		_ = v.WaitFor(ctx, version)
	}
}
