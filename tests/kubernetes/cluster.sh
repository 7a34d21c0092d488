# Sourced after tier.sh, in a world of its own: a Kubernetes of real parts on this machine. The control plane and etcd run here; each
# node is a network, mount and process namespace with a containerd, a kubelet and a kube-proxy of its own.
#
#   10.77.0.0/24  bridge `cluster`: 10.77.0.1 is here, node-I has 10.77.0.1I
#   10.77.1.0/24, 10.77.2.0/24  bridges `red` and `blue`: the fabrics; node-I has 10.77.1.1I and 10.77.2.1I, a guest's wires hang there
#   10.244.I.0/24  pods of node-I        10.96.0.0/16  Services
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh

kube=$scratch/kube
pki=$kube/pki
programs=$root/build/kubernetes
control=10.77.0.1
export kube pki programs control
# shellcheck source=SCRIPTDIR/certificates.sh
. "$root/tests/kubernetes/certificates.sh"

kubectl() { "$programs/kubectl" --kubeconfig "$pki/admin.conf" "$@"; }

# started NAME PROGRAM ARGUMENT... : in the background, with NAME.log and NAME.pid.
started() {
  local name=$1
  shift
  setsid "$@" >>"$kube/$name.log" 2>&1 </dev/null &
  echo $! >"$kube/$name.pid"
}

# ended NAME : ends it and waits until it has.
ended() {
  local pid i
  pid=$(cat "$kube/$1.pid")
  kill -TERM "$pid" 2>/dev/null || return 0
  for ((i = 0; i < 600; i++)); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.05
  done
  kill -KILL "$pid"
}

networks_make() {
  local i name names=(cluster red blue)
  mount -t tmpfs tmpfs /run # names of namespaces are ours alone
  for i in 0 1 2; do
    name=${names[i]}
    ip link add "$name" type bridge
    ip addr add "10.77.$i.1/24" dev "$name"
    ip link set "$name" up
    [ "$i" = 0 ] && continue
    ip tuntap add dev "wire$i" mode tap
    ip link set "wire$i" master "$name" up
  done
  sysctl -qw net.ipv4.ip_forward=1
}

etcd_start() {
  started etcd "$programs/etcd" --data-dir "$kube/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 --log-level warn
}

apiserver_ready() { kubectl get --raw /readyz; }

apiserver_start() {
  started kube-apiserver "$programs/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --advertise-address="$control" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
    --cert-dir="$kube" --service-cluster-ip-range=10.96.0.0/16 --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --kubelet-client-certificate="$pki/kubelets-client.crt" --kubelet-client-key="$pki/kubelets-client.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP
  until_true 120 apiserver_ready || { tail -n 20 "$kube/kube-apiserver.log" >&2; return 1; }
}

controlplane_start() { # NODES : of Kubernetes
  local as
  certificates_make "$1"
  etcd_start
  apiserver_start
  as="$pki/kube-controller-manager.conf"
  started kube-controller-manager "$programs/kube-controller-manager" --kubeconfig="$as" --authentication-kubeconfig="$as" \
    --authorization-kubeconfig="$as" --use-service-account-credentials --service-account-private-key-file="$pki/accounts.key" \
    --root-ca-file="$pki/ca.crt" --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
    --leader-elect=false --cert-dir="$kube" --node-monitor-grace-period=20s
  as="$pki/kube-scheduler.conf"
  started kube-scheduler "$programs/kube-scheduler" --kubeconfig="$as" --authentication-kubeconfig="$as" \
    --authorization-kubeconfig="$as" --leader-elect=false --cert-dir="$kube"
}

# node_wire I : the node's network, and its cables into the three bridges.
node_wire() {
  local i j names=(cluster red blue)
  ip netns add "node-$1"
  ip -n "node-$1" link set lo up
  for i in 0 1 2; do
    ip link add "n$1-${names[i]}" type veth peer name "eth$i" netns "node-$1"
    ip link set "n$1-${names[i]}" master "${names[i]}" up
    ip -n "node-$1" addr add "10.77.$i.1$1/24" dev "eth$i"
    ip -n "node-$1" link set "eth$i" up
  done
  ip -n "node-$1" route add default via "$control"
  for j in 1 2 3 4; do
    [ "$j" = "$1" ] || ip -n "node-$1" route add "10.244.$j.0/24" via "10.77.0.1$j"
  done
  ip route replace "10.244.$1.0/24" via "10.77.0.1$1"
  nsenter --net="/run/netns/node-$1" sysctl -qw net.ipv4.ip_forward=1
}

# node_cgroups I : the control groups of the node's pods. An empty cpuset admits no process.
node_cgroups() {
  local at
  for at in /sys/fs/cgroup/*/; do
    [ -w "$at/cgroup.procs" ] || continue
    mkdir -p "$at$cgroups/node-$1"
    if [ -e "$at/cpuset.cpus" ]; then
      for each in "$at$cgroups" "$at$cgroups/node-$1"; do
        cat "$at/cpuset.cpus" >"$each/cpuset.cpus"
        cat "$at/cpuset.mems" >"$each/cpuset.mems"
      done
    fi
  done
}

# node_start I : powers node-I on; its disks are as they were.
node_start() {
  local node=$kube/node-$1
  mkdir -p "$node"/{containerd,kubelet,cni,local}
  node_wire "$1"
  node_cgroups "$1"
  started "node-$1" nsenter --net="/run/netns/node-$1" unshare --mount --uts --pid --fork --kill-child --mount-proc \
    "$root/tests/kubernetes/node" "$1"
}

# node_off I : the node loses power. First its network ends, then its processes.
node_off() {
  local name
  for name in cluster red blue; do ip link set "n$1-$name" down; done
  kill -KILL "$(cat "$kube/node-$1.pid")"
  until_true 30 node_dead "$1"
  for name in cluster red blue; do ip link del "n$1-$name"; done
  ip netns del "node-$1"
}
node_dead() { ! pgrep -f "^$programs/kubelet .*--hostname-override=node-$1( |\$)"; }

node_is() { # NODE STATUS
  [ "$(kubectl get node "node-$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]
}

# node_ready I : waits for it, and tells the node where its portals are.
node_ready() {
  until_true 240 node_is "$1" True || { tail -n 20 "$kube/node-$1"/*.log >&2; return 1; }
  kubectl annotate --overwrite node "node-$1" "listen.sluice.dev/red=10.77.1.1$1" "listen.sluice.dev/blue=10.77.2.1$1" \
    "switch.sluice.dev/red=red-$1" "switch.sluice.dev/blue=blue-$1"
}

# kubernetes_start NODES : all of it, and a name server.
kubernetes_start() {
  local i
  mkdir -p "$kube"
  networks_make
  controlplane_start 4
  for ((i = 1; i <= $1; i++)); do node_start "$i"; done
  for ((i = 1; i <= $1; i++)); do node_ready "$i"; done
  kubectl apply -f "$root/tests/kubernetes/manifests/kubernetes.yaml"
  kubectl -n kube-system rollout status deployment/coredns --timeout=120s
}

# kubernetes_say : what the cluster looks like; for when something is not as it should be.
kubernetes_say() {
  kubectl get nodes -o wide || true
  kubectl get pods -A -o wide || true
  kubectl get sluice -A || true
  kubectl get events -A --sort-by=.lastTimestamp | tail -n 30 || true
}
