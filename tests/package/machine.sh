# Sourced after tier.sh, in namespaces of its own (isolate): boots a Debian with its systemd, and runs commands in it. The root is $debian,
# and the machine shares the network of this script, so clients of this side reach its services on loopback. machine_on_lan makes further
# machines, each with its own root and network.
# shellcheck shell=bash disable=SC2154 # scratch comes from tier.sh

debian=${SLUICE_DEBIAN_ROOT:?the root that tests/package/run makes}
machine=sluice-test # the machine of all functions; its host name
declare -A machine_process machine_cgroup machine_root

# on MACHINE COMMAND... : calls a function for that machine.
on() {
  local machine=$1
  shift
  "$@"
}

# inside COMMAND... : runs it in the machine.
inside() { nsenter --target "$(cat "$scratch/$machine.pid")" --all -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

property() { inside systemctl show --value -p "$2" "$1"; } # UNIT PROPERTY
runs_as_account() { # UNIT
  # shellcheck disable=SC2016 # awk reads it
  [ "$(inside awk '$1 == "Uid:" {print $2}' "/proc/$(property "$1" MainPID)/status")" = "$(inside id -u sluice)" ]
}

booted() { inside systemctl is-system-running | grep -qE '^(running|degraded)$'; }

# machine_on_lan NUMBER : prepares $machine: a root that begins as $debian, and a network with the address 192.0.2.NUMBER. This side has
# 192.0.2.254. The directory /srv is on the file system of the scratch folder.
machine_on_lan() {
  local own=$scratch/$machine
  mkdir -p "$own"/{root,changes,work,srv} /run/netns
  if ! ip link show lan >/dev/null 2>&1; then
    mount -t tmpfs tmpfs /run/netns
    ip link add lan type bridge
    ip addr add 192.0.2.254/24 dev lan
    ip link set lan up
  fi
  mount -t overlay overlay -o "lowerdir=$debian,upperdir=$own/changes,workdir=$own/work" "$own/root"
  mount --bind "$own/srv" "$own/root/srv"
  echo "$machine" >"$own/root/etc/hostname"
  echo "192.0.2.$1 $machine" >>"$own/root/etc/hosts"
  machine_root[$machine]=$own/root
  ip netns add "$machine"
  ip link add "lan-$machine" type veth peer name eth0 netns "$machine"
  ip link set "lan-$machine" master lan up
  ip -n "$machine" link set lo up
  ip -n "$machine" addr add "192.0.2.$1/24" dev eth0
  ip -n "$machine" link set eth0 up
}

machine_start() {
  local root_of=${machine_root[$machine]:-} network=() cgroup
  if [ -z "$root_of" ]; then
    root_of=$debian
    mount --bind "$debian" "$debian"
  else
    network=(nsenter "--net=/run/netns/$machine")
  fi
  mount -t tmpfs -o mode=755 tmpfs "$root_of/dev"
  mkdir "$root_of"/dev/{pts,shm}
  cp -a /dev/{null,zero,full,random,urandom,tty} "$root_of/dev/"
  mount -t tmpfs -o mode=755 tmpfs "$root_of/run"
  # systemd makes its control groups below one of the test, and sees no others.
  cgroup=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ {print $2; exit}' /proc/mounts)
  cgroup=$(mktemp -d "${cgroup:-/sys/fs/cgroup}/sluice-package.XXXXXX")
  machine_cgroup[$machine]=$cgroup
  at_end+=("on $machine machine_stop")
  # shellcheck disable=SC2016 # the inner shell expands it
  bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' cgroup "$cgroup" \
    "${network[@]}" unshare --pid --fork --kill-child --mount --uts --ipc --cgroup \
    "$root/tests/package/init" "$root_of" "$scratch/$machine.pid" "$machine" >"$scratch/$machine.log" 2>&1 </dev/null &
  machine_process[$machine]=$!
  if ! until_true 90 booted; then
    failed "Debian boots with systemd: $(tail -n 3 "$scratch/$machine.log" | tr '\n' ' ')"
    exit 1
  fi
}

# A control group can be removed once its last process has gone, a moment after the kill.
cgroup_removed() {
  find "${machine_cgroup[$machine]}" -depth -type d -exec rmdir {} + 2>/dev/null || true
  [ ! -e "${machine_cgroup[$machine]}" ]
}

# machine_stop : as a loss of power does.
machine_stop() {
  [ -n "${machine_process[$machine]:-}" ] || return 0
  kill -KILL "${machine_process[$machine]}"
  wait "${machine_process[$machine]}" || true
  machine_process[$machine]=
  umount "${machine_root[$machine]:-$debian}"/{run,dev}
  until_true 20 cgroup_removed
}
