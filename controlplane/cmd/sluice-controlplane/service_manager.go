package main

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifyServiceManager reports a state to systemd (sd_notify(3)). It does nothing in a process that is no service of Type=notify.
func notifyServiceManager(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd could not be notified", "state", state, "problem", err)
	}
}
