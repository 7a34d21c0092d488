# Sourced after tier.sh and gateway.sh: a control plane with its etcd in the process, and gateways that it leads, all on
# this machine. Gateway I is gw-I; its portals are 10.77.1.1I and 10.77.2.1I (fabrics red and blue), its forwarding
# port is on 10.77.9.1I. $scratch/gw-I.log and gw-I.pid as in gateway.sh; $scratch/controlplane.{log,pid,exit}.
# shellcheck shell=bash disable=SC2154 # root, scratch and gateway come from tier.sh and gateway.sh

controlplane=${SLUICE_CONTROLPLANE:-$root/build/bin/sluice-controlplane}
sluicectl=${SLUICE_SLUICECTL:-$root/build/bin/sluicectl}
certs=$scratch/certs
api=${SLUICE_API:-127.0.0.1:7460} # an address of a wire, where a guest has to reach it
export SLUICE_SERVER=$api
export SLUICE_TLS_CA=$certs/ca.crt SLUICE_TLS_CERT=$certs/admin.crt SLUICE_TLS_KEY=$certs/admin.key

ctl() { "$sluicectl" "$@"; }

# cluster_networks : two fabrics and the network between the gateways, as addresses on wires that a guest may hang on.
cluster_networks() { # GATEWAYS
  local fabric i device
  for fabric in 1 2 9; do
    device=wire$fabric
    if ! ip link show "$device" >/dev/null 2>&1; then
      ip tuntap add dev "$device" mode tap
      ip addr add "10.77.$fabric.1/24" dev "$device"
      ip link set "$device" up
    fi
    for ((i = 1; i <= $1; i++)); do ip addr add "10.77.$fabric.1$i/24" dev "$device"; done
  done
}

controlplane_ready() { ctl fabric list >/dev/null 2>&1; }

controlplane_start() {
  rm -f "$scratch/controlplane.exit"
  (
    status=0
    # shellcheck disable=SC2016 # the inner shell expands it
    bash -c 'echo $$ >"$1"; shift; exec "$@"' controlplane "$scratch/controlplane.pid" "$controlplane" serve \
      --listen "$api" --data-dir "$scratch/etcd" --tls-ca "$certs/ca.crt" --tls-cert "$certs/server.crt" --tls-key "$certs/server.key" \
      >>"$scratch/controlplane.log" 2>&1 </dev/null || status=$?
    echo "$status" >"$scratch/controlplane.exit"
  ) 2>/dev/null & # bash would tell that a child was killed
  at_end+=("kill -KILL \$(cat '$scratch/controlplane.pid')")
  if ! until_true 30 controlplane_ready; then
    tail -n 20 "$scratch/controlplane.log" >&2
    return 1
  fi
}

# cluster_gateway I : starts gateway I; returns at once.
cluster_gateway() {
  local name=gw-$1
  rm -f "$scratch/$name".{pid,exit}
  (
    status=0
    # shellcheck disable=SC2016 # the inner shell expands it
    bash -c 'echo $$ >"$1"; shift; exec "$@"' gateway "$scratch/$name.pid" "$gateway" \
      --control-plane "$api" --tls-ca "$certs/ca.crt" --tls-cert "$certs/gateway-$name.crt" \
      --tls-key "$certs/gateway-$name.key" --gateway-name "$name" --node "$(node_of "$1")" --reactors 1 \
      --state-dir "$scratch/$name.state" --admin-socket "$scratch/$name.socket" \
      >>"$scratch/$name.log" 2>&1 </dev/null || status=$?
    echo "$status" >"$scratch/$name.exit"
  ) 2>/dev/null &
  at_end+=("kill -KILL \$(cat '$scratch/$name.pid')")
}

# field PATH NOUN NAME : a field of an object, as `status.ownership`.
field() {
  ctl "$2" get "$3" -o json | python3 -c '
import json, sys
value = json.load(sys.stdin)
for part in sys.argv[1].split("."):
    value = value.get(part, "") if isinstance(value, dict) else ""
print(value)' "$1"
}

gateway_ready() { [ "$(field status.health gateway "gw-$1")" = GATEWAY_HEALTH_READY ]; }
volume_owned() { [ "$(field status.ownership volume "$1")" = OWNERSHIP_STATE_OWNED ]; }
volume_owner() { field status.ownerGateway volume "$1"; }
owned_by_another() { volume_owned "$1" && [ "$(volume_owner "$1")" != "$2" ]; } # VOLUME GATEWAY

# Where volumes live: `local`, a directory of the one node that all gateways are on, or `rbd`, a real Ceph (lib/mini-ceph)
# that each gateway reaches from a node of its own. The storage pool has that name.
backend=${BACKEND:-local}
case $backend in
  local | rbd) ;;
  *)
    echo "BACKEND=$backend: local and rbd are possible" >&2
    exit 2
    ;;
esac

node_of() { if [ "$backend" = rbd ]; then echo "node-$1"; else echo node-1; fi; } # GATEWAY

cluster_pool() {
  if [ "$backend" = local ]; then
    mkdir -p "$scratch/pool"
    ctl pool create local --node node-1 --directory "$scratch/pool"
    return
  fi
  at_end+=("'$root/tests/lib/mini-ceph' destroy '$scratch/ceph'")
  OSD_MIB=4096 "$root/tests/lib/mini-ceph" start "$scratch/ceph"
  sed -n 's/^\s*key = //p' "$scratch/ceph/gateway.keyring" >"$scratch/ceph.key"
  ctl pool create rbd --monitor "$(sed -n 's/^mon_host = \[v2:\([0-9.:]*\)\].*/\1/p' "$scratch/ceph/ceph.conf")" --user gateway \
    --ceph-key-file "$scratch/ceph.key" --ceph-pool rbd
}

# cluster_start GATEWAYS : certificates, control plane, fabrics, gateways, and the pool.
cluster_start() {
  local i names=()
  for ((i = 1; i <= $1; i++)); do names+=(--gateway "gw-$i"); done
  "$controlplane" certs --directory "$certs" --host "${api%:*}" "${names[@]}" >/dev/null
  controlplane_start
  ctl fabric create red --subnet 10.77.1.0/24
  ctl fabric create blue --subnet 10.77.2.0/24
  ctl gatewaypool create default --fabric red --fabric blue
  cluster_pool
  for ((i = 1; i <= $1; i++)); do
    ctl gateway create "gw-$i" --pool default --node "$(node_of "$i")" --forwarding-address "10.77.9.1$i:3261" \
      --portal "fabric=red,listen=10.77.1.1$i:3260" --portal "fabric=blue,listen=10.77.2.1$i:3260"
    cluster_gateway "$i"
  done
  for ((i = 1; i <= $1; i++)); do
    until_true 30 gateway_ready "$i" || { cluster_say; return 1; }
  done
}

# cluster_say : what the cluster looks like, and the ends of the logs; for when something is not as it should be.
cluster_say() {
  ctl gateway list -o wide || true
  ctl volume list -o wide || true
  tail -n 15 "$scratch"/controlplane.log "$scratch"/gw-*.log
}
