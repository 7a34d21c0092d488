package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

const (
	// MaxMembers bounds the members of an embedded cluster. More voters make each change slower, and three survive the loss of one.
	MaxMembers = 3
	// changeTimeout bounds one change of the members.
	changeTimeout = 10 * time.Second
	// promoteEvery is the interval at which a learner asks to become a voter, and waitingEvery that at which a start reports.
	promoteEvery = 500 * time.Millisecond
	waitingEvery = 10 * time.Second
)

// Errors of Admit and Remove.
var (
	// ErrNoPeering: the etcd has no listener, so it is the only member.
	ErrNoPeering = errors.New("the control plane runs without `serve --etcd-peer-address`: it is the only member of its etcd")
	// ErrMembersFull: there are MaxMembers.
	ErrMembersFull = fmt.Errorf("the etcd has %d members, which is all it needs", MaxMembers)
	// ErrNoMember: no member has this address.
	ErrNoMember = errors.New("no such member")
	// ErrLastMember: the only member cannot be removed.
	ErrLastMember = errors.New("it is the only member: its removal would destroy the store")
	// ErrNotNow: the other members do not permit the change at present.
	ErrNotNow = errors.New("the members do not permit the change at present: make the unreachable members reachable, and repeat it")
)

// MemberExistsError: the address belongs to a member that has data.
type MemberExistsError struct{ Node, Address string }

func (e *MemberExistsError) Error() string {
	return fmt.Sprintf("the member %s at %s has data already: if its server lost them, remove the member first (RemoveMember of the API)",
		e.Node, e.Address)
}

// Member is one member of an embedded cluster.
type Member struct {
	// Node is its name; empty: it was admitted and has never started.
	Node string
	// Address at which the others reach it; empty: it is the only member, without a listener.
	Address            string
	Learner, Reachable bool
	id                 uint64
}

// Members returns the members in the order of their names. Members that have never started have no name, and come first.
func (e *Embedded) Members(ctx context.Context) ([]Member, error) {
	listed, err := e.listMembers(ctx)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	for i := range listed {
		member := &listed[i]
		if member.id == uint64(e.server.Server.MemberID()) {
			member.Reachable = true
		} else if e.peering != nil {
			all.Go(func() { member.Reachable = e.peering.reaches(member.Address) })
		}
	}
	all.Wait()
	return listed, nil
}

// listMembers returns the members that a majority knows.
func (e *Embedded) listMembers(ctx context.Context) ([]Member, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	answer, err := e.Client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("members of etcd: %w", err)
	}
	var listed []Member
	for _, member := range answer.Members {
		found := Member{Node: member.Name, Learner: member.IsLearner, id: member.ID}
		if len(member.PeerURLs) > 0 {
			found.Address = addressOf(member.PeerURLs[0])
		}
		listed = append(listed, found)
	}
	slices.SortFunc(listed, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Address, b.Address)) })
	return listed, nil
}

// Admit adds a learner at an address, which becomes a voter after it has started and has all data. `former` is the address that the
// same node gave before, if any: a learner there that never started is replaced. It returns the addresses of those that have started. A repetition
// succeeds. Errors: ErrNoPeering, ErrMembersFull, ErrNotNow, MemberExistsError.
func (e *Embedded) Admit(ctx context.Context, node, address, former string) ([]string, error) {
	if e.peering == nil {
		return nil, ErrNoPeering
	}
	members, err := e.listMembers(ctx)
	if err != nil {
		return nil, err
	}
	admitted, count := false, 0
	var others []string
	for _, member := range members {
		switch {
		case member.Node != "" && (member.Node == node || member.Address == address), !member.Learner && member.Address == address:
			return nil, &MemberExistsError{member.Node, member.Address}
		case member.Address == address:
			admitted = true
		case member.Node == "" && member.Learner && former != "" && member.Address == former:
			if err := e.remove(ctx, member.id); err != nil {
				return nil, err
			}
		default:
			count++
			if member.Node != "" { // the others do not answer yet
				others = append(others, member.Address)
			}
		}
	}
	if admitted {
		return others, nil
	}
	if count >= MaxMembers {
		return nil, ErrMembersFull
	}
	own := peerURL(address)
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	added, err := e.Client.MemberAddAsLearner(ctx, []string{own.String()})
	if err != nil {
		return nil, notNow(err)
	}
	// Another replica may have admitted a server at the same time.
	if len(added.Members) > MaxMembers {
		return nil, errors.Join(ErrMembersFull, e.remove(ctx, added.Member.ID))
	}
	return others, nil
}

// Remove removes the member at an address for good. Errors: ErrNoMember, ErrLastMember, ErrNotNow.
func (e *Embedded) Remove(ctx context.Context, address string) error {
	members, err := e.listMembers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(member Member) bool { return member.Address == address })
	switch {
	case i < 0:
		return ErrNoMember
	case len(members) == 1:
		return ErrLastMember
	case !members[i].Learner && !slices.ContainsFunc(members, func(m Member) bool { return !m.Learner && m.id != members[i].id }):
		return ErrLastMember
	}
	return e.remove(ctx, members[i].id)
}

func (e *Embedded) remove(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	_, err := e.Client.MemberRemove(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return nil
	}
	return notNow(err)
}

// notNow adds ErrNotNow to errors of a change that can succeed later.
func notNow(err error) error {
	for _, later := range []error{rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrTooManyLearners,
		rpctypes.ErrTimeout, rpctypes.ErrNoLeader, rpctypes.ErrTimeoutDueToLeaderFail, context.DeadlineExceeded} {
		if errors.Is(err, later) {
			return fmt.Errorf("%w (%w)", ErrNotNow, err)
		}
	}
	return err
}

// enter makes a started member a voter, and tells the other members its address.
func (e *Embedded) enter(ctx context.Context) error {
	if e.peering == nil {
		return nil
	}
	if err := e.becomeVoter(ctx); err != nil {
		return err
	}
	return e.announce(ctx)
}

// becomeVoter waits until this member has all data and votes. The leader of the cluster decides that.
func (e *Embedded) becomeVoter(ctx context.Context) error {
	ticker := time.NewTicker(promoteEvery)
	defer ticker.Stop()
	reported := time.Time{}
	for e.server.Server.IsLearner() {
		_, err := e.server.Server.PromoteMember(ctx, uint64(e.server.Server.MemberID()))
		switch {
		case errors.Is(err, membership.ErrIDNotFound), errors.Is(err, membership.ErrIDRemoved):
			return errRemoved
		case err != nil && !errors.Is(err, membership.ErrMemberNotLearner) && time.Since(reported) > waitingEvery:
			reported = time.Now()
			reason := "this member receives the data of the others: " + err.Error()
			if !errors.Is(err, etcderrors.ErrLearnerNotReady) {
				reason = "this member is not a voter yet: " + err.Error()
			}
			e.peering.report(reason)
		}
		select {
		case <-ticker.C:
		case <-e.server.Server.StopNotify():
			return errRemoved
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *Peering) report(reason string) {
	if p != nil && p.Waiting != nil {
		p.Waiting(reason)
	}
}

// announce stores this member's address if the others know another one. A store that was founded without listener has a placeholder.
func (e *Embedded) announce(ctx context.Context) error {
	own := peerURL(e.peering.Address)
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	answer, err := e.Client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, member := range answer.Members {
		if member.ID != uint64(e.server.Server.MemberID()) || slices.Equal(member.PeerURLs, []string{own.String()}) {
			continue
		}
		if _, err := e.Client.MemberUpdate(ctx, member.ID, []string{own.String()}); err != nil {
			return fmt.Errorf("--etcd-peer-address %s: the members do not accept it: %w", e.peering.Address, err)
		}
	}
	return nil
}
