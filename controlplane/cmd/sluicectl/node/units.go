package node

import (
	"context"
	"strings"
)

// sampleUnit is the gateway that the package starts at its installation. It is no part of a cluster.
const sampleUnit = "sluice-gateway.service"

const controlPlaneUnit = "sluice-controlplane.service"

// Timers of the package sluicectl.
const (
	backupTimer       = "sluice-backup.timer"
	certificatesTimer = "sluice-certificates.timer"
)

// backupStep needs an administrator's access on this server.
func (s *System) backupStep() step {
	return step{what: "back the store up every day, in /var/lib/sluice-backups (" + backupTimer + ")",
		run: func(ctx context.Context) (bool, error) { return s.startUnit(ctx, backupTimer) }}
}

func (s *System) renewalStep() step {
	return step{what: "renew the certificates of this server in time (" + certificatesTimer + ")",
		run: func(ctx context.Context) (bool, error) { return s.startUnit(ctx, certificatesTimer) }}
}

// unitProperty returns a property of a unit, as systemctl prints it.
func (s *System) unitProperty(ctx context.Context, unit, property string) (string, error) {
	value, err := s.Run(ctx, "systemctl", "show", "--value", "-p", property, unit)
	return strings.TrimSpace(value), err
}

// unitState reports whether systemd runs a unit, and whether it starts it at a boot.
func (s *System) unitState(ctx context.Context, unit string) (active, enabled bool, err error) {
	state, err := s.unitProperty(ctx, unit, "ActiveState")
	if err != nil {
		return false, false, err
	}
	// The properties of an instance that was never loaded do not say whether it is enabled; is-enabled exits with 1 if not.
	word, _ := s.Run(ctx, "systemctl", "is-enabled", unit)
	return state == "active", strings.TrimSpace(word) == "enabled", nil
}

// startUnit enables a unit and starts it. systemctl returns once the program says that it serves.
func (s *System) startUnit(ctx context.Context, unit string) (changed bool, err error) {
	active, enabled, err := s.unitState(ctx, unit)
	if err != nil || active && enabled {
		return false, err
	}
	if _, err := s.Run(ctx, "systemctl", "enable", "--now", unit); err != nil {
		return false, &unitError{unit, err}
	}
	return true, nil
}

// gatewayStep writes the flags of a gateway and starts it. A gateway that runs with other flags is started again.
func (s *System) gatewayStep(of gateway, node string, controlPlanes []string) step {
	path := "/etc/sluice/gateway-" + of.name + ".env"
	return step{what: "start the gateway " + of.name + " (" + of.unit() + ", flags in " + path + ")", run: func(ctx context.Context) (bool, error) {
		flags := of.flags(node, controlPlanes)
		wrote, err := s.setFlags(path, flags)
		if err != nil {
			return false, err
		}
		started, err := s.startUnit(ctx, of.unit())
		if err != nil || started {
			return true, err
		}
		current, err := s.runsWith(ctx, of.unit(), flags)
		if err != nil || current {
			return wrote, err
		}
		if _, err := s.Run(ctx, "systemctl", "restart", of.unit()); err != nil {
			return false, &unitError{of.unit(), err}
		}
		return true, nil
	}}
}

// runsWith reports whether the process of a unit has these flags. A file of flags that was changed has an effect at the next start only.
func (s *System) runsWith(ctx context.Context, unit, flags string) (bool, error) {
	process, err := s.unitProperty(ctx, unit, "MainPID")
	if err != nil {
		return false, err
	}
	words, err := s.read("/proc/" + process + "/cmdline")
	if err != nil {
		return false, err
	}
	return strings.Contains(strings.ReplaceAll(words, "\x00", " "), flags), nil
}

// stopUnit stops a unit, and prevents its start at a boot.
func (s *System) stopUnit(ctx context.Context, unit string) (changed bool, err error) {
	active, enabled, err := s.unitState(ctx, unit)
	if err != nil || !active && !enabled {
		return false, err
	}
	if _, err := s.Run(ctx, "systemctl", "disable", "--now", unit); err != nil {
		return false, &unitError{unit, err}
	}
	return true, nil
}

// unitError names the log of a unit that could not be started or stopped.
type unitError struct {
	unit  string
	cause error
}

func (e *unitError) Error() string { return e.cause.Error() + "; the log: journalctl -u " + e.unit }

func (e *unitError) Unwrap() error { return e.cause }
