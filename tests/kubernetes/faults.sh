# Sourced by run: what is done to the cluster, each a word that the guest asks for; succeeds once the cluster is as it should be after.
# shellcheck shell=bash disable=SC2154 # scratch comes from tier.sh, programs and pki from cluster.sh

volume() { kubectl -n shop get volume.sluice.dev "$1" -o "jsonpath=$2"; } # NAME JSONPATH
gateway_of() { # NUMBER : the Gateway's name
  kubectl get gateways.sluice.dev -o 'jsonpath={range .items[*]}{.metadata.name} {.status.number}{"\n"}{end}' | awk -v n="$1" '$2 == n {print $1}'
}
pod_is_another() { # POD UID
  local uid
  uid=$(kubectl -n sluice-system get pod "$1" -o 'jsonpath={.metadata.uid}') && [ -n "$uid" ] && [ "$uid" != "$2" ]
}

fault_kill_pod() {
  local name uid
  name=$(gateway_of "$(volume database '{.status.ownerGateway}')")
  uid=$(kubectl -n sluice-system get pod "$name" -o 'jsonpath={.metadata.uid}')
  kubectl -n sluice-system delete pod "$name" --grace-period=0 --force
  until_true 120 pod_is_another "$name" "$uid"
  until_true 240 gateways_ready 3
}

paths() { kubectl -n shop patch target.sluice.dev disks --type=merge -p "{\"spec\":{\"paths\":$1}}"; } # HOW-MANY gateways

# The target wants a path by every gateway: what can be moved is, and the node's pod goes because the other two serve.
fault_drain_node() {
  kubectl drain node-3 --ignore-daemonsets --delete-emptydir-data --force --timeout=240s
}
fault_uncordon_node() {
  kubectl uncordon node-3
  until_true 240 gateways_ready 3
  limit=120 ready target/disks
}

# Upgrades from BEFORE to the present programs, or else to the same programs under another version. No other gateway can take the
# local volume: the rollout reports that, and waits for the administrator.
fault_upgrade() {
  local to=(--set image.tag=0.1.1)
  if [ -n "${BEFORE:-}" ]; then to=(); fi
  helm upgrade sluice-crds "$root/charts/sluice-crds" --namespace sluice-system
  chart upgrade "${to[@]}"
  until_true 480 rollout_waits
  [ "$(volume scratch '{.status.ownership}')" = Owned ]
  chart upgrade "${to[@]}" --set gatewayPool.rollout.ignoreRedundancy=true
  until_true 480 gateways_ready 3
  chart upgrade "${to[@]}"
}
rollout_waits() { kubectl get gateways.sluice.dev -o yaml | grep -q 'its pod is replaced (rollout.ignoreRedundancy'; }

fault_restart_apiserver() {
  ended kube-apiserver
  ended etcd
  etcd_start
  apiserver_start
  limit=120 ready volume/database target/disks
}

fault_restart_controlplane() {
  local uid
  uid=$(kubectl -n sluice-system get pod sluice-controlplane-0 -o 'jsonpath={.metadata.uid}')
  kubectl -n sluice-system delete pod sluice-controlplane-0 --grace-period=0 --force
  until_true 120 pod_is_another sluice-controlplane-0 "$uid"
  kubectl -n sluice-system rollout status statefulset/sluice-controlplane --timeout=240s
  until_true 240 gateways_ready 3
  limit=120 ready volume/database target/disks
}

local_is() { [ "$(volume scratch '{.status.conditions[?(@.type=="Ready")].reason}')" = "$1" ]; } # REASON

fault_node_off() {
  node_off 1
  until_true 180 local_is OwnerDead
  limit=60 ready volume/database
}

fault_node_on() {
  node_start 1
  node_ready 1
  until_true 360 gateways_ready 3
  until_true 120 local_is Ready
}

fault_scale_up() {
  node_start 4
  node_ready 4
  kubectl scale gatewaypool.sluice.dev gateways --replicas=4
  until_true 240 gateways_ready 4
  paths 4
  limit=120 ready target/disks
}

fault_scale_down() {
  paths 2
  limit=120 ready target/disks
  kubectl scale gatewaypool.sluice.dev gateways --replicas=2
  until_true 480 gateways_ready 2
}

# With a host logged in, the chart does not go.
fault_uninstall_refused() { ! helm uninstall sluice --namespace sluice-system --timeout 4m; }
