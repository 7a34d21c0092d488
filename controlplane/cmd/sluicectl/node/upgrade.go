package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
)

// Upgrade installs newer packages on this server while hosts continue.
type Upgrade struct {
	System  *System
	Cluster Cluster
	// Packages are files of packages; none: apt takes the packages from its repositories.
	Packages []string
	// Findings are the findings that forbid an upgrade, each in one line.
	Findings func(context.Context) ([]string, error)
	// Sessions is the number of sessions of hosts on a gateway.
	Sessions func(ctx context.Context, gateway string) (int, error)
	// Well is how long the system must have no finding before a gateway starts again; 0: findingsAppear.
	Well time.Duration
}

const (
	// lookAgain is the interval at which findings and sessions are read.
	lookAgain = 500 * time.Millisecond
	// findingsAppear is the time after which each fault is a finding. A system without a finding for so long is well.
	findingsAppear = 5 * time.Second
	// hostsReturn bounds the wait for the hosts of a gateway that has started again. open-iscsi logs in again within some seconds. A host
	// that was switched off meanwhile does not return.
	hostsReturn = time.Minute
)

// Run checks the system, saves the store, installs the packages, and waits until everything on this server serves again. An interrupted run
// can be repeated. changed: packages were replaced.
func (u *Upgrade) Run(ctx context.Context, to io.Writer) (changed bool, err error) {
	plan, err := u.System.readRecord()
	if err != nil {
		return false, err
	}
	if plan == nil || len(plan.Fabrics) == 0 {
		return false, errNotSetUp
	}
	steps := []step{{what: "look for findings of the system", waits: true, run: u.check}}
	if u.System.hasUnit(ctx, backupTimer) {
		steps = append(steps, step{what: "save the store in /var/lib/sluice-backups", waits: true, run: func(ctx context.Context) (bool, error) {
			_, err := u.System.Run(ctx, "systemctl", "start", strings.TrimSuffix(backupTimer, ".timer")+".service")
			return false, err
		}})
	}
	var objects []proto.Message
	for _, object := range plan.gatewayObjects() {
		objects = append(objects, object)
	}
	for _, object := range plan.poolObjects() {
		objects = append(objects, object)
	}
	steps = append(steps,
		step{what: "install the packages: the control plane starts again", run: u.install},
		awaited(u.Cluster, objects...))
	for i, one := range plan.gateways() {
		steps = append(steps, step{what: "start the gateway " + one.name + " again, and wait until its hosts have returned", run: func(ctx context.Context) (bool, error) {
			return u.restart(ctx, to, one, objects[i])
		}})
	}
	steps = append(steps, awaited(u.Cluster, objects...), step{what: "wait until the system has no finding", waits: true, run: u.settle})
	return runSteps(ctx, to, steps)
}

// hasUnit reports whether systemd starts a unit at a boot. A server with gateways only has no timer of backups.
func (s *System) hasUnit(ctx context.Context, unit string) bool {
	word, _ := s.Run(ctx, "systemctl", "is-enabled", unit)
	return strings.TrimSpace(word) == "enabled"
}

// check refuses the upgrade of a system that is not well: the restart of a gateway could be what takes the last path from a host.
func (u *Upgrade) check(ctx context.Context) (bool, error) {
	found, err := u.Findings(ctx)
	if err != nil || len(found) == 0 {
		return false, err
	}
	return false, fmt.Errorf("nothing was changed, because the system has findings: %s; remedy: `sluicectl doctor`, or --ignore NAME if a finding "+
		"does not matter", strings.Join(found, "; "))
}

func (u *Upgrade) install(ctx context.Context) (changed bool, err error) {
	before, err := u.System.installedVersions(ctx)
	if err != nil {
		return false, err
	}
	arguments := []string{"install", "-q", "-y", "--no-install-recommends"}
	if len(u.Packages) > 0 {
		for _, file := range u.Packages {
			at, err := filepath.Abs(file) // apt takes a name without a slash for that of a package
			if err != nil {
				return false, err
			}
			arguments = append(arguments, at)
		}
	} else {
		if _, err := u.System.Run(ctx, "apt-get", "update", "-q"); err != nil {
			return false, err
		}
		arguments = append(append(arguments, "--only-upgrade"), packages...)
	}
	// The package of the gateway would start all gateways again, without waiting for hosts.
	if _, err := u.System.Run(ctx, "env", append([]string{"SLUICE_RESTART=no", "apt-get"}, arguments...)...); err != nil {
		return false, err
	}
	after, err := u.System.installedVersions(ctx)
	return after != before, err
}

// restart starts a gateway again that runs with a program which was replaced. It ends once the gateway is ready and has its hosts again, so
// that the next gateway is not the last path of a host.
func (u *Upgrade) restart(ctx context.Context, to io.Writer, one gateway, object proto.Message) (changed bool, err error) {
	replaced, err := u.System.runsReplaced(ctx, one.unit())
	if err != nil || !replaced {
		return false, err
	}
	// The control plane, or the gateway before, has just started again.
	if _, err := u.settle(ctx); err != nil {
		return false, err
	}
	before, err := u.Sessions(ctx, one.name)
	if err != nil {
		return false, err
	}
	if _, err := u.System.Run(ctx, "systemctl", "restart", one.unit()); err != nil {
		return false, &unitError{one.unit(), err}
	}
	if err := u.Cluster.WaitUsable(ctx, object); err != nil {
		return true, err
	}
	patience := time.After(hostsReturn)
	for {
		now, err := u.Sessions(ctx, one.name)
		if err == nil && now >= before {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return true, errors.Join(err, ctx.Err())
		case <-patience:
			_, _ = fmt.Fprintf(to, "  %d of %d sessions have returned within %s: a host may be down\n", now, before, hostsReturn)
			return true, err
		case <-time.After(lookAgain):
		}
	}
}

// runsReplaced reports whether the program of a unit's process was replaced since its start. A unit that does not run has none.
func (s *System) runsReplaced(ctx context.Context, unit string) (bool, error) {
	process, err := s.unitProperty(ctx, unit, "MainPID")
	if err != nil || process == "0" {
		return false, err
	}
	program, err := os.Readlink(s.path("/proc/" + process + "/exe"))
	return strings.HasSuffix(program, " (deleted)"), err
}

// installedVersions returns the versions of all packages, in one text.
func (s *System) installedVersions(ctx context.Context) (string, error) {
	return s.Run(ctx, "dpkg-query", append([]string{"-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"}, packages...)...)
}

// settle waits until the restarts have left no finding.
func (u *Upgrade) settle(ctx context.Context) (bool, error) {
	well := time.Now()
	for {
		found, err := u.Findings(ctx)
		if err != nil || len(found) > 0 {
			well = time.Now()
		} else if time.Since(well) >= cmp.Or(u.Well, findingsAppear) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, errors.Join(err, fmt.Errorf("the packages are installed, and the system has findings: %s", strings.Join(found, "; ")))
		case <-time.After(lookAgain):
		}
	}
}
