package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice.dev/sluice/bench/harness"
	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/initiator"
	"sluice.dev/sluice/tests/netns"
)

const (
	readyTime = 5 * time.Minute // for each wait
	faultTime = 2 * time.Minute
	usedLUNs  = 4 // LUNs to which each session sends a command
	atOnce    = 8 // concurrent logins or commands
	// Hosts with this number of sessions do not ping each of them all the time.
	pingAfter    = 30 * time.Second
	silenceLimit = 90 * time.Second
	loginTimeout = 30 * time.Second
)

// scale is a cluster that is being filled.
type scale struct {
	settings
	*cluster.Cluster
	owners   *cluster.Owners
	figures  *figures
	sessions []*initiator.Session
}

// measure fills a cluster and then kills its gateways. It returns the measurements even with an error.
func measure(ctx context.Context, s settings) (*figures, error) {
	directory, err := os.MkdirTemp("", "sluice-scale-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(directory) }() // scratch
	programs, err := filepath.Abs(s.programs)
	if err != nil {
		return nil, err
	}
	starting, started := context.WithTimeout(ctx, readyTime)
	defer started()
	made, err := cluster.Start(starting, cluster.Options{Programs: programs, Directory: directory, Gateways: s.gateways,
		Volumes: 1, Replicas: 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }() // its namespaces end with this process in any case
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sc := &scale{settings: s, Cluster: made, owners: made.FollowOwners(ctx),
		figures: &figures{Gateways: s.gateways, LUNs: s.luns, Sessions: s.sessions}}
	defer sc.logOut()
	for _, step := range []func(context.Context) error{sc.start, sc.fill, sc.logIn, sc.killEach, sc.use} {
		if err := step(ctx); err != nil {
			sc.figures.Failed = err.Error()
			return sc.figures, fmt.Errorf("%w\n%s", err, made.Logs(5))
		}
	}
	return sc.figures, nil
}

func (s *scale) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	return s.sumMemory(empty, 1)
}

func (s *scale) fill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	began := time.Now()
	if err := s.Grow(ctx, s.luns); err != nil {
		return err
	}
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	for i := range s.gateways { // each has received all of them
		session, err := s.session(ctx, s.Portals(i)[0], i, 0)
		if err != nil {
			return err
		}
		err = netns.Until(ctx, func() error {
			_, err := session.Good(ctx, initiator.TestUnitReady(uint16(s.luns-1)))
			return err
		})
		session.LogOut()
		if err != nil {
			return fmt.Errorf("the last LUN through %s: %w", cluster.GatewayName(i), err)
		}
	}
	s.figures.Made = time.Since(began).Seconds()
	fmt.Printf("%d LUNs are made, owned and exported after %.1f s\n", s.luns, s.figures.Made)
	return s.sumMemory(full, s.luns)
}

// session opens session number n of a portal.
func (s *scale) session(ctx context.Context, portal string, n, of int) (*initiator.Session, error) {
	return initiator.Login(ctx, initiator.Options{Portal: portal, Target: cluster.Target, LoginTimeout: loginTimeout,
		Initiator: fmt.Sprintf("%s%d", cluster.Initiator, 1+n%cluster.MaxHosts),
		ISID:      [6]byte{0x80, 0, byte(of), 0, byte(n >> 8), byte(n)}, PingAfter: pingAfter, SilenceLimit: silenceLimit})
}

func (s *scale) logIn(ctx context.Context) error {
	began := time.Now()
	s.sessions = make([]*initiator.Session, s.settings.sessions)
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.figures.Login = time.Since(began).Seconds()
	fmt.Printf("%d sessions are logged in after %.1f s\n", s.settings.sessions, s.figures.Login)
	return s.sumMemory(loggedIn, s.luns)
}

// connect logs in the sessions that are missing or lost.
func (s *scale) connect(ctx context.Context) error {
	portals := s.AllPortals()
	return s.each(func(i int) (err error) {
		if s.sessions[i] == nil || s.sessions[i].Lost() != nil {
			s.sessions[i], err = s.session(ctx, portals[i%len(portals)], i/len(portals), 1)
		}
		return err
	})
}

// use sends a command to some LUNs over each session, with other LUNs for the next session. It comes last, because each session
// then has connections to the owners of its LUNs, which exceed the number of sessions.
func (s *scale) use(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	err := s.each(func(i int) error {
		for k := range min(usedLUNs, s.luns) {
			err := netns.Until(ctx, func() error { // a LUN may be moving to another owner
				_, err := s.sessions[i].Good(ctx, initiator.TestUnitReady(uint16((i*usedLUNs+k)%s.luns)))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.sumMemory(used, s.luns)
}

// each calls do for every session, several at a time, and returns all errors.
func (s *scale) each(do func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, s.settings.sessions)
	turns := make(chan struct{}, atOnce)
	for i := range failed {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			failed[i] = do(i)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func (s *scale) logOut() {
	for _, session := range s.sessions {
		if session != nil {
			session.Reset()
		}
	}
}

// killEach kills one gateway after the other, waits until its LUNs have owners, and starts it again.
func (s *scale) killEach(ctx context.Context) error {
	for i := range s.kills {
		ready, cancel := context.WithTimeout(ctx, readyTime)
		err := s.WaitReady(ready)
		cancel()
		if err != nil {
			return err
		}
		d, err := s.kill(ctx, i)
		if err != nil {
			return fmt.Errorf("%s: %w", cluster.GatewayName(i), err)
		}
		fmt.Printf("%s with %d LUNs: failover %.3f s, portals open %.3f s after its start, a LUN answers after %.3f s\n",
			cluster.GatewayName(i), d.LUNs, d.Failover, d.PortalsOpen, d.FirstAnswer)
		s.figures.Deaths = append(s.figures.Deaths, d)
	}
	return nil
}

func (s *scale) kill(ctx context.Context, gateway int) (death, error) {
	ctx, cancel := context.WithTimeout(ctx, faultTime)
	defer cancel()
	d := death{What: "death"}
	number, err := s.Number(ctx, gateway)
	if err != nil {
		return d, err
	}
	struck := s.owners.Of(number)
	d.LUNs = len(struck)
	began := time.Now()
	if err := s.Gateways[gateway].Kill(); err != nil {
		return d, err
	}
	last, err := s.owners.WaitNewer(ctx, struck)
	if err != nil {
		return d, err
	}
	d.Failover = max(0, last.Sub(began).Seconds())
	began = time.Now()
	if err := s.Gateways[gateway].Start(); err != nil {
		return d, err
	}
	portal := s.Portals(gateway)[0]
	if err := netns.Until(ctx, func() error {
		connection, err := net.DialTimeout("tcp", portal, time.Second)
		if err == nil {
			_ = connection.Close() // only the connection itself matters
		}
		return err
	}); err != nil {
		return d, err
	}
	d.PortalsOpen = time.Since(began).Seconds()
	session, err := s.session(ctx, portal, gateway, 2)
	if err != nil {
		return d, err
	}
	defer session.Reset()
	err = netns.Until(ctx, func() error {
		_, err := session.Good(ctx, initiator.TestUnitReady(uint16(s.luns-1)))
		return err
	})
	d.FirstAnswer = time.Since(began).Seconds()
	return d, err
}

// sumMemory sums the gateways' memory.
func (s *scale) sumMemory(stage string, luns int) error {
	m := memory{What: "memory", Stage: stage, Gateways: s.gateways, LUNs: luns}
	for _, session := range s.sessions {
		if session == nil {
			continue
		}
		if lost := session.Lost(); lost != nil {
			return lost
		}
		m.Sessions++
	}
	for _, gateway := range s.Gateways {
		rss, pss, err := harness.Resident(gateway.Pid())
		if err != nil {
			return fmt.Errorf("%s: %w", gateway.Name, err)
		}
		m.RSS += rss
		m.PSS += pss
	}
	fmt.Printf("%s: RSS %d MiB, PSS %d MiB\n", stage, m.RSS>>20, m.PSS>>20)
	s.figures.Memory = append(s.figures.Memory, m)
	return nil
}
