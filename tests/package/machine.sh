# Sourced after tier.sh, in namespaces of its own (isolate): boots the Debian in $debian with its systemd, and runs commands in it. The
# machine shares the network of this script, so clients of this side reach its services on loopback.
# shellcheck shell=bash disable=SC2154 # scratch comes from tier.sh

debian=${SLUICE_DEBIAN_ROOT:?the root that tests/package/run makes}

# inside COMMAND... : runs it in the machine.
inside() { nsenter --target "$(cat "$scratch/machine.pid")" --all -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

property() { inside systemctl show --value -p "$2" "$1"; } # UNIT PROPERTY
runs_as_account() { # UNIT
  # shellcheck disable=SC2016 # awk reads it
  [ "$(inside awk '$1 == "Uid:" {print $2}' "/proc/$(property "$1" MainPID)/status")" = "$(inside id -u sluice)" ]
}

booted() { inside systemctl is-system-running | grep -qE '^(running|degraded)$'; }

machine_start() {
  mount --bind "$debian" "$debian"
  mount -t tmpfs -o mode=755 tmpfs "$debian/dev"
  mkdir "$debian"/dev/{pts,shm}
  cp -a /dev/{null,zero,full,random,urandom,tty} "$debian/dev/"
  mount -t tmpfs -o mode=755 tmpfs "$debian/run"
  # systemd makes its control groups below one of the test, and sees no others.
  cgroup=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ {print $2; exit}' /proc/mounts)
  cgroup=$(mktemp -d "${cgroup:-/sys/fs/cgroup}/sluice-package.XXXXXX")
  at_end+=("machine_stop")
  # shellcheck disable=SC2016 # the inner shell expands it
  bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' cgroup "$cgroup" \
    unshare --pid --fork --kill-child --mount --uts --ipc --cgroup \
    "$root/tests/package/init" "$debian" "$scratch/machine.pid" >"$scratch/machine.log" 2>&1 </dev/null &
  machine=$!
  if ! until_true 90 booted; then
    failed "Debian boots with systemd: $(tail -n 3 "$scratch/machine.log" | tr '\n' ' ')"
    exit 1
  fi
}

# A control group can be removed once its last process has gone, a moment after the kill.
cgroup_removed() { find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || true; [ ! -e "$cgroup" ]; }

machine_stop() {
  kill -KILL "$machine"
  wait "$machine"
  until_true 20 cgroup_removed
}
