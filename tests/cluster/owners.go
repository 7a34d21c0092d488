package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	pb "sluice.dev/sluice/proto/sluice/v1"
)

// Ownership of a volume in the control plane's last report.
type Ownership struct {
	// Gateway is the owner's number, 0: none.
	Gateway uint32
	Epoch   uint64
	// Serves: the owner serves the volume (OWNED).
	Serves bool
	// Heard is the time of the report.
	Heard time.Time
	// FenceBegan is the time at which the fence of the last fenced owner began; zero: none was fenced.
	FenceBegan time.Time
}

// Owners has the control plane's reports on all volumes, from a watch: polling would cost the control plane more with every
// volume.
type Owners struct {
	mu      sync.Mutex
	known   map[string]Ownership
	changed chan struct{} // closed at each change
}

// FollowOwners starts to watch, until ctx ends; a broken watch is restarted.
func (c *Cluster) FollowOwners(ctx context.Context) *Owners {
	o := &Owners{known: map[string]Ownership{}, changed: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			_ = c.watchOwners(ctx, o) // the control plane may be stopped: the watch is restarted
			select {
			case <-ctx.Done():
			case <-time.After(watchPause):
			}
		}
	}()
	return o
}

const watchPause = 100 * time.Millisecond

func (c *Cluster) watchOwners(ctx context.Context, o *Owners) error {
	stream, err := c.volumes().WatchVolumes(ctx, &pb.WatchVolumesRequest{})
	if err != nil {
		return err
	}
	for {
		change, err := stream.Recv()
		if err != nil {
			return err
		}
		if volume := change.GetVolume(); volume != nil {
			o.observe(volume.GetMeta().GetName(), volume.GetStatus())
		}
	}
}

func (o *Owners) observe(name string, status *pb.VolumeStatus) {
	now := Ownership{Gateway: status.GetOwnerGateway(), Epoch: status.GetEpoch(),
		Serves: status.GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_OWNED}
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.known[name]
	now.Heard, now.FenceBegan = was.Heard, was.FenceBegan
	if now != was { // other changes of a volume do not change the time
		now.Heard = time.Now()
		if status.GetOwnership() == pb.OwnershipState_OWNERSHIP_STATE_FENCING {
			now.FenceBegan = now.Heard
		}
		o.known[name] = now
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// Now returns all known ownerships, by volume.
func (o *Owners) Now() map[string]Ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.known)
}

// Of returns the volumes that a gateway, by its number, owns and serves.
func (o *Owners) Of(number uint32) map[string]Ownership {
	all := o.Now()
	maps.DeleteFunc(all, func(_ string, ownership Ownership) bool { return ownership.Gateway != number || !ownership.Serves })
	return all
}

// WaitShare returns once a gateway, by its number, owns and serves this number of volumes.
func (o *Owners) WaitShare(ctx context.Context, number uint32, volumes int) error {
	for {
		o.mu.Lock()
		owned, changed := 0, o.changed
		for _, ownership := range o.known {
			if ownership.Gateway == number && ownership.Serves {
				owned++
			}
		}
		o.mu.Unlock()
		if owned >= volumes {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("gateway %d owns %d volumes, not %d: %w", number, owned, volumes, ctx.Err())
		}
	}
}

// WaitNewer returns once each of these volumes is served in a later epoch, and the time when the last one was.
func (o *Owners) WaitNewer(ctx context.Context, than map[string]Ownership) (time.Time, error) {
	for {
		last, left, changed := o.newer(than)
		if left == 0 {
			return last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d volumes are not served again: %w", left, len(than), ctx.Err())
		}
	}
}

func (o *Owners) newer(than map[string]Ownership) (last time.Time, left int, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, was := range than {
		ownership := o.known[name]
		if !ownership.Serves || ownership.Epoch <= was.Epoch {
			left++
		} else if ownership.Heard.After(last) {
			last = ownership.Heard
		}
	}
	return last, left, o.changed
}

// Number returns the number of a gateway, from 0, in the control plane's reports.
func (c *Cluster) Number(ctx context.Context, gateway int) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.gateways().GetGateway(ctx, &pb.GetGatewayRequest{Name: GatewayName(gateway)})
	return got.GetGateway().GetStatus().GetNumber(), err
}
