package faults_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

const second, third = 1, 2 // gateways, from 0; the second is one of two on the pool's node, the third is on another node

const silence = "a gateway without a stream is dead after 4 s in which peers do not hear it (R1); volumes are then taken over"

func killed(gateway int) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) { return s.Gateways[gateway].Start, s.Gateways[gateway].Kill() }
}

// gatewayRows are faults of gateways and of the network between them.
var gatewayRows = []fault{
	{name: "a gateway was killed", id: "GatewayDead", object: "Gateway/gw-2", cause: "is dead, and fenced", grace: 5 * time.Second,
		lasts: 10 * time.Second, known: silence, induce: killed(second)},
	{name: "a target has fewer paths because a gateway was killed", id: "FewerPaths", object: "Target/threefold",
		cause: "has 3 paths, and not all their gateways serve", grace: 5 * time.Second, lasts: 10 * time.Second, known: silence,
		induce: func(s *system) (func() error, error) {
			remove, err := s.threefold()
			return func() error { return errors.Join(s.Gateways[second].Start(), remove()) }, errors.Join(err, s.Gateways[second].Kill())
		}},
	{name: "the only gateway of a volume was killed", id: "VolumeWithoutOwner", object: "Volume/far", cause: "has no owner",
		grace: 5 * time.Second, lasts: 10 * time.Second, known: silence, induce: killed(third)},
	{name: "an image was removed, and the owner of the volume was killed", id: "VolumeDataUnusable", object: "Volume/removed",
		cause: "No such file", grace: 15 * time.Second, lasts: 10 * time.Second, known: silence, induce: removed},
	{name: "a gateway was frozen by SIGSTOP", id: "GatewayDead", object: "Gateway/gw-2", cause: "is dead, and fenced", grace: 10 * time.Second,
		lasts: 20 * time.Second, known: silence, induce: func(s *system) (func() error, error) {
			g := s.Gateways[second]
			return func() error { return errors.Join(g.Kill(), g.Start()) }, g.Freeze(s.ctx)
		}},
	{name: "a gateway is cut off from the control plane", id: "GatewayDisconnected", object: "Gateway/gw-3",
		cause: "has no connection to the control plane", grace: 5 * time.Second, lasts: 10 * time.Second,
		known: "a silent stream ends after 3 s", induce: func(s *system) (func() error, error) {
			undo, err := s.Network.Partition("gw-3", cluster.ControlNode, cluster.Internal)
			return undo, err
		}},
	{name: "the owner of a volume is cut off from the control plane", id: "VolumeOwnerDisconnected", object: "Volume/far", cause: "",
		grace: 5 * time.Second, lasts: 10 * time.Second, known: "a silent stream ends after 3 s, and volumes report it 2 s later",
		induce: func(s *system) (func() error, error) {
			undo, err := s.Network.Partition("gw-3", cluster.ControlNode, cluster.Internal)
			return undo, err
		}},
	{name: "a firewall separates a gateway from its peers", id: "GatewayNotServing", object: "Gateway/gw-2", cause: "is not reached",
		grace: 15 * time.Second, lasts: 10 * time.Second, known: silence, induce: func(s *system) (func() error, error) {
			one, err := s.Network.Partition("gw-1", "gw-2", cluster.Internal)
			two, err2 := s.Network.Partition("gw-3", "gw-2", cluster.Internal)
			return func() error { return errors.Join(one(), two()) }, errors.Join(err, err2)
		}},
	{name: "a firewall separates a gateway from one of its peers", id: "GatewayPeersLost", object: "Gateway/gw-2",
		cause: "gateway gw-1 receives nothing from it", grace: 15 * time.Second, lasts: 10 * time.Second, known: silence,
		induce: func(s *system) (func() error, error) { // the third gateway reaches both
			remove, err := s.threefold()
			join, err2 := s.Network.Partition("gw-1", "gw-2", cluster.Internal)
			return func() error { return errors.Join(join(), remove()) }, errors.Join(err, err2)
		}},
	{name: "the link of a gateway is down", id: "GatewayDead", object: "Gateway/gw-2", cause: "is dead, and fenced", grace: 10 * time.Second,
		lasts: 20 * time.Second, known: silence, induce: func(s *system) (func() error, error) {
			undo, err := s.Network.CutLink("gw-2", cluster.Internal)
			return undo, err
		}},
	{name: "another process listens on a gateway's forwarding port", id: "GatewayRefused", object: "Gateway/gw-2", cause: ":3261",
		grace: 5 * time.Second, lasts: 20 * time.Second, known: silence, induce: occupied(func(s *system) string { return s.ForwardingAddress(second) })},
	{name: "another process listens on a gateway's iSCSI port", id: "GatewayRefused", object: "Gateway/gw-2", cause: ":3260",
		grace: 5 * time.Second, lasts: 20 * time.Second, known: silence, induce: occupied(func(s *system) string { return s.Portals(second)[0] })},
	{name: "a gateway runs on another node than its object says", id: "GatewayRefused", object: "Gateway/gw-2", cause: "node-77",
		grace: 5 * time.Second, lasts: 20 * time.Second, known: silence, induce: restarted("--node", "node-77")},
	{name: "a gateway is started twice", id: "GatewayStartedTwice", object: "Gateway/gw-2", cause: "PortsInUse", lasts: 20 * time.Second,
		known: "the finding ends 20 s after the last attempt of the second process", induce: twice},
	{name: "a drain cannot end", id: "DrainBlocked", object: "Gateway/gw-3", cause: "far", grace: 5 * time.Second,
		known: "a volume that cannot leave is checked every 3 s", induce: func(s *system) (func() error, error) {
			return func() error { return s.Undrain(s.ctx, third) }, s.Drain(s.ctx, third)
		}},
	{name: "a gateway is drained", id: "GatewayDrained", object: "Gateway/gw-2", cause: "is drained", grace: 35 * time.Second,
		lasts: 10 * time.Second, known: "sessions have 30 s to move", induce: func(s *system) (func() error, error) {
			return func() error { return s.Undrain(s.ctx, second) }, s.Drain(s.ctx, second)
		}},
}

// threefold creates a target that all gateways export, so that all are peers, and returns a function that deletes it.
func (s *system) threefold() (remove func() error, err error) {
	return func() error { return s.ctl("target delete threefold --yes --wait --timeout 20s") },
		s.ctl("target create threefold --host host-1 --lun 0=spare --paths 3 --wait --timeout 20s")
}

// occupied starts a gateway while another process listens at one of its addresses.
func occupied(address func(*system) string) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		g := s.Gateways[second]
		other := &netns.Process{Name: "other", Node: "gw-2", Log: filepath.Join(s.Directory, "other.log"),
			Arguments: []string{"python3", "-c", "import socket,sys,time; h,p=sys.argv[1].split(':'); s=socket.create_server((h,int(p))); time.sleep(600)",
				address(s)}}
		err := errors.Join(g.Stop(20*time.Second), other.Start())
		if err == nil {
			err = errors.Join(netns.UntilListens(s.ctx, other, address(s)), g.Start())
		}
		return other.Kill, err
	}
}

// twice starts a second process of a gateway.
func twice(s *system) (func() error, error) {
	first, directory := s.Gateways[second], filepath.Join(s.Directory, "twice")
	words := slices.Clone(first.Arguments)
	for i, word := range words[:len(words)-1] {
		switch word {
		case "--admin-socket":
			words[i+1] = filepath.Join(directory, "socket")
		case "--state-dir":
			words[i+1] = filepath.Join(directory, "state")
		}
	}
	again := &netns.Process{Name: "gw-2 again", Node: first.Node, Arguments: words, Log: filepath.Join(directory, "log")}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	return again.Kill, again.Start()
}

// restarted starts a gateway with another value of an option, and then as before.
func restarted(option, value string) func(*system) (func() error, error) {
	return func(s *system) (func() error, error) {
		g := s.Gateways[second]
		before := slices.Clone(g.Arguments)
		err := g.Stop(20 * time.Second)
		g.Arguments = slices.Clone(before)
		g.Arguments[slices.Index(before, option)+1] = value
		return func() error {
			_ = g.Kill() // it may have ended
			g.Arguments = before
			return g.Start()
		}, errors.Join(err, g.Start())
	}
}

// removed removes the image of a volume and kills its owner, so that another gateway tries to open it.
func removed(s *system) (func() error, error) {
	image, err := s.volumeIn("removed")
	if err != nil {
		return nil, err
	}
	owner, err := s.OwnerOf(s.ctx, "removed")
	if err != nil {
		return nil, err
	}
	return func() error {
		return errors.Join(os.Rename(image+".kept", image), s.Gateways[owner].Start(), s.within(20*time.Second, func() error { return s.serves("removed") }), s.drops("removed"))
	}, errors.Join(os.Rename(image, image+".kept"), s.Gateways[owner].Kill())
}

// serves fails until a volume has an owner that serves it.
func (s *system) serves(volume string) error {
	shown, err := s.Control(s.ctx, "volume", "list")
	for line := range strings.Lines(string(shown)) {
		if strings.HasPrefix(line, volume+" ") && strings.Contains(line, "Owned") && strings.Contains(line, "True") {
			return nil
		}
	}
	return errors.Join(err, errors.New(string(shown)))
}
