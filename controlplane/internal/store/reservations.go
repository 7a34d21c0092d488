package store

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sluice.dev/sluice/controlplane/internal/model"
)

func (s *Store) reservationKey(uid string) string { return s.prefix + "reservations/" + uid }

// LoadReservations reads a volume's reservations, linearizably, if epoch is the present one. If none are stored the generation is
// 0. Errors: ErrFenced.
func (s *Store) LoadReservations(ctx context.Context, uid string, epoch uint64) (model.Reservations, error) {
	kept, _, err := s.readReservations(ctx, uid, epoch)
	return kept, err
}

func (s *Store) readReservations(ctx context.Context, uid string, epoch uint64) (model.Reservations, int64, error) {
	var kept model.Reservations
	done, err := s.client.Txn(ctx).If(atEpoch(s.epochKey(uid), epoch)).
		Then(clientv3.OpGet(s.reservationKey(uid))).Commit()
	if err != nil {
		return kept, 0, fmt.Errorf("store: %w", err)
	}
	if !done.Succeeded {
		return kept, 0, model.ErrFenced
	}
	got := done.Responses[0].GetResponseRange().Kvs
	if len(got) == 0 {
		return kept, 0, nil
	}
	if err := json.Unmarshal(got[0].Value, &kept); err != nil {
		return kept, 0, fmt.Errorf("%s in the store: %w", got[0].Key, err)
	}
	return kept, got[0].ModRevision, nil
}

// CommitReservations stores the next generation if epoch is the present one and the stored generation is `expected` (R8). Nil
// means stored. ErrFenced and ErrGeneration mean certainly not stored. After any other error the outcome is unknown (R3), and the
// caller must load again.
func (s *Store) CommitReservations(ctx context.Context, uid string, epoch, expected uint64, state []byte) error {
	if len(state) > model.MaxReservationState {
		return fmt.Errorf("%w: %d bytes of reservations, at most %d are kept", model.ErrGeneration, len(state), model.MaxReservationState)
	}
	present, revision, err := s.readReservations(ctx, uid, epoch)
	if err != nil {
		return err
	}
	if present.Generation != expected {
		return model.ErrGeneration
	}
	value, err := json.Marshal(model.Reservations{Generation: expected + 1, State: state})
	if err != nil {
		return err
	}
	key := s.reservationKey(uid)
	done, err := s.client.Txn(ctx).
		If(atEpoch(s.epochKey(uid), epoch), clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(s.epochKey(uid))).Commit()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if done.Succeeded {
		return nil
	}
	if got := done.Responses[0].GetResponseRange().Kvs; len(got) == 0 || string(got[0].Value) != fmt.Sprint(epoch) {
		return model.ErrFenced
	}
	return model.ErrGeneration
}
