package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/tests/cluster"
	"sluice.dev/sluice/tests/netns"
)

// endsWithin bounds the time after which a process that must not run ends by itself.
const endsWithin = 10 * time.Second

// startSecond returns a second process of a gateway, with its own log and admin socket; `words` replace arguments.
func (r *recorded) startSecond(of *netns.Process, words map[string]string) *netns.Process {
	r.made++
	name := fmt.Sprintf("%s-again-%d", of.Name, r.made)
	arguments := slices.Clone(of.Arguments)
	for i := range len(arguments) - 1 {
		if word, set := words[arguments[i]]; set {
			arguments[i+1] = word
		} else if arguments[i] == "--admin-socket" {
			arguments[i+1] = filepath.Join(r.Directory, name+".socket")
		}
	}
	p := &netns.Process{Name: name, Node: of.Node, Arguments: arguments, Environment: of.Environment, Log: filepath.Join(r.Directory, name+".log")}
	r.others = append(r.others, p)
	return p
}

// refusesToRun requires that a process ends by itself and states why.
func (r *recorded) refusesToRun(p *netns.Process, words string) error {
	select {
	case <-p.Done():
	case <-time.After(endsWithin):
		r.find("%s still runs after %v; its log ends:\n%s", p.Name, endsWithin, p.LogTail(5))
	}
	if lines := strings.Join(p.Unexpected(), "\n"); !strings.Contains(lines, words) {
		r.find("%s ends without %q: %s", p.Name, words, lines)
	}
	return p.Kill()
}

func (r *recorded) anyGateway() (int, *netns.Process) {
	i := r.random.IntN(len(r.Gateways))
	return i, r.Gateways[i]
}

func (r *recorded) twinOfState(context.Context) (func(context.Context) error, error) {
	_, gateway := r.anyGateway()
	if !gateway.Running() {
		return nil, nil // another fault has killed it: a second process would be the only one
	}
	second := r.startSecond(gateway, nil)
	err := second.Start()
	return func(context.Context) error { return r.refusesToRun(second, "in use by process") }, err
}

// copyState returns a copy of a gateway's state directory.
func (r *recorded) copyState(gateway int) (string, error) {
	r.made++
	at := filepath.Join(r.Directory, fmt.Sprintf("state-%d", r.made))
	return at, os.CopyFS(at, os.DirFS(filepath.Join(r.Directory, cluster.GatewayName(gateway)+".state")))
}

func (r *recorded) twinOfCopy(context.Context) (func(context.Context) error, error) {
	number, gateway := r.anyGateway()
	state, err := r.copyState(number)
	if err != nil || !gateway.Running() {
		return nil, err
	}
	second := r.startSecond(gateway, map[string]string{"--state-dir": state})
	err = second.Start()
	return func(ctx context.Context) error {
		r.reported(ctx, "gateway", cluster.GatewayName(number), "Refused", "PortsInUse")
		return second.Kill()
	}, err
}

// wrongCertificate replaces a gateway by a process with the certificate of another gateway.
func (r *recorded) wrongCertificate(context.Context) (func(context.Context) error, error) {
	number, gateway := r.anyGateway()
	if r.keeper.held[gateway].Swap(true) {
		return nil, nil // another fault has it
	}
	err := gateway.Kill()
	state, err2 := r.copyState(number)
	other := filepath.Join(r.Directory, "certs", "gateway-"+cluster.GatewayName((number+1)%len(r.Gateways)))
	second := r.startSecond(gateway, map[string]string{"--state-dir": state, "--tls-cert": other + ".crt", "--tls-key": other + ".key"})
	err = errors.Join(err, err2, second.Start())
	return func(context.Context) error {
		r.keeper.held[gateway].Store(false)
		return second.Kill()
	}, err
}

func (r *recorded) wrongKeyFile(ctx context.Context) (func(context.Context) error, error) {
	r.made++
	key := filepath.Join(r.Directory, fmt.Sprintf("secrets-%d.key", r.made))
	text, err := r.NewKey(ctx)
	if err := errors.Join(err, os.WriteFile(key, text, 0o600)); err != nil {
		return nil, err
	}
	third := r.startSecond(r.Replicas[0], map[string]string{"--key-file": key, "--listen": r.Address(len(r.Replicas)),
		"--data-dir": filepath.Join(r.Directory, fmt.Sprintf("replica-%d", r.made))})
	err = third.Start()
	return func(context.Context) error {
		if r.reports { // its etcd is still available
			return r.refusesToRun(third, "key")
		}
		return third.Kill()
	}, err
}

// emptyStore makes a control plane of another system answer gateways. It has the same objects, but other uids of volumes.
func (r *recorded) emptyStore(ctx context.Context) (func(context.Context) error, error) {
	for _, replica := range r.Replicas {
		r.keeper.held[replica].Store(true)
		if err := replica.Kill(); err != nil {
			return nil, err
		}
	}
	r.made++
	arguments := slices.Clone(r.Replicas[0].Arguments)
	for at := slices.Index(arguments, "--etcd-endpoints"); at >= 0; at = slices.Index(arguments, "--etcd-endpoints") {
		arguments = slices.Delete(arguments, at, at+2)
	}
	first := &netns.Process{Name: r.Replicas[0].Name, Node: r.Replicas[0].Node, Arguments: arguments}
	other := r.startSecond(first, map[string]string{"--data-dir": filepath.Join(r.Directory, fmt.Sprintf("empty-%d", r.made))})
	err := other.Start()
	if err == nil {
		err = netns.Until(ctx, func() error { return r.Grow(ctx, r.Volumes) })
	}
	return func(ctx context.Context) error {
		for i := range r.Gateways {
			r.reported(ctx, "gateway", cluster.GatewayName(i), "Refused", "AnotherSystem")
		}
		err := other.Kill()
		for _, replica := range r.Replicas {
			r.keeper.held[replica].Store(false)
		}
		return err
	}, err
}
