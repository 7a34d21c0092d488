# Sourced by run: pods with Sluice's disks, made by Kubernetes' own sidecars. The pods run on one more node, a QEMU guest (csi.guest):
# the kernel below the other nodes may have neither iSCSI nor dm-multipath.
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh, the rest from cluster.sh

guest=$scratch/guest-node
sluice() { # ARGUMENT... : sluicectl as the chart's notes say
  "$root/build/bin/sluicectl" --server localhost:7460 --tls-ca "$guest/admin/ca.crt" --tls-cert "$guest/admin/tls.crt" \
    --tls-key "$guest/admin/tls.key" "$@"
}

snapshots_install() {
  kubectl apply --server-side -f "$programs/snapshots.yaml"
  kubectl apply -f "$root/tests/kubernetes/manifests/snapshot-controller.yaml"
}

# guest_disk : what makes a Kubernetes node of the guest, as a disk for it.
guest_disk() {
  local each
  mkdir -p "$guest"/node/{bin,cni,images,pki,containerd,kubelet} "$guest/shared"
  for each in containerd containerd-shim-runc-v2 ctr runc; do cp -L "$(command -v "$each")" "$guest/node/bin/"; done
  cp -L "$(ldd "$(command -v runc)" | awk '/libseccomp/ {print $3}')" "$guest/node/bin/"
  cp "$programs/kubelet" "$guest/node/bin/"
  cp /usr/lib/cni/{ptp,host-local,loopback} "$guest/node/cni/"
  cp -L "$images"/{test-pause-1,csi-node-driver-registrar-*,livenessprobe-*,sluice-csi}.tar "$guest/node/images/"
  certificate guest /O=system:nodes/CN=system:node:guest extendedKeyUsage=clientAuth,serverAuth subjectAltName=DNS:guest,IP:10.77.1.2 \
    >>"$kube/openssl.log" 2>&1
  kubeconfig guest
  cp "$pki"/{ca.crt,guest.crt,guest.key} "$guest/node/pki/"
  sed "s|$pki|/node/pki|g" "$pki/guest.conf" >"$guest/node/pki/guest.conf"
  truncate -s 2G "$guest/disk"
  mkfs.ext4 -q -d "$guest/node" "$guest/disk"
  rm -r "$guest/node"
  "$root/build/bin/sluicectl" host-config linux >"$guest/shared/host-config"
}

guest_ready() { [ "$(kubectl get node guest -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }

driver_known() { # NODE... : their kubelets have it from the registrar
  local node
  for node in "$@"; do
    kubectl get csinode "$node" -o 'jsonpath={.spec.drivers[*].name}' | grep -qw csi.sluice.dev || return 1
  done
}

admin_connected() {
  local file
  mkdir -p "$guest/admin"
  for file in ca.crt tls.crt tls.key; do
    kubectl -n sluice-system get secret sluice-admin-tls -o "jsonpath={.data.${file/./\\.}}" | base64 -d >"$guest/admin/$file"
  done
  started port-forward "$programs/kubectl" --kubeconfig "$pki/admin.conf" -n sluice-system port-forward service/sluice-controlplane 7460
  until_true 30 sluice volume list
}

claim() { kubectl -n pods get pvc "$1" -o "jsonpath=$2"; }          # NAME JSONPATH
bound_to() { claim "$1" '{.spec.volumeName}'; }                     # CLAIM : its PersistentVolume
attached() { # CLAIM NODE
  kubectl get volumeattachments -o 'jsonpath={range .items[*]}{.spec.source.persistentVolumeName} {.spec.nodeName} {.status.attached}{"\n"}{end}' |
    grep -qx "$(bound_to "$1") $2 true"
}
in_pod() { kubectl -n pods exec "$1" -- /bin/busybox sh -c "$2"; } # POD SCRIPT
patch_claim() { kubectl -n pods patch pvc "$1" --type=merge -p "{\"spec\":$2}"; } # CLAIM SPEC

pods_begin() {
  kubectl apply -f "$root/tests/kubernetes/manifests/csi.yaml"
  kubectl -n pods wait --for=condition=Ready --timeout=600s pod/writer
  local name
  for name in files disk shared; do [ "$(claim "$name" '{.status.phase}')" = Bound ]; done
}

# Three maps, each of the four portals of two gateways at least: the kernel's own word. A path that was late is added within minutes.
pods_paths() { until_true 400 maps_whole; }
maps_whole() {
  # shellcheck disable=SC2016 # the pod's shell expands it
  in_pod writer 'for each in /sys/block/dm-*/slaves; do /bin/busybox ls "$each" | /bin/busybox wc -l; done' | awk '$1 < 4 {exit 1} END {exit NR != 3}'
}
# The control plane lets the node in with that name and its password only, and it is in.
pods_authenticated() {
  sluice host get csi.guest -o json | python3 -c '
import json, sys
host = json.load(sys.stdin)
assert host["spec"]["chap"] == {"passwordSet": True, "username": "nodes"} and "allowUnauthenticated" not in host["spec"], host
assert host["status"]["sessions"] >= 8, host'
}

pods_write() {
  in_pod writer '/bin/busybox dd if=/dev/urandom of=/files/data bs=1M count=8 && /bin/busybox dd if=/files/data of=/dev/disk bs=1M && /bin/busybox sync'
  in_pod writer '/bin/busybox cmp -n 8388608 /files/data /dev/disk'
}

pods_expand() {
  local name
  for name in files disk; do patch_claim "$name" '{"resources":{"requests":{"storage":"128Mi"}}}'; done
  for name in files disk; do until_true 400 expanded "$name"; done
  [ "$(in_pod writer '/bin/busybox blockdev --getsize64 /dev/disk')" = $((128 << 20)) ]
  [ "$(in_pod writer '/bin/busybox df -k /files' | awk 'END {print $(NF - 4)}')" -gt $((96 << 10)) ]
}
expanded() {
  [ "$(claim "$1" '{.status.capacity.storage}')" = 128Mi ] &&
    [ "$(sluice volume get "$(bound_to "$1")" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["spec"]["sizeBytes"])')" = $((128 << 20)) ]
}

pods_limit() {
  patch_claim files '{"volumeAttributesClassName":"slow"}'
  until_true 400 limited
}
limited() {
  [ "$(claim files '{.status.currentVolumeAttributesClassName}')" = slow ] &&
    [ "$(sluice volume get "$(bound_to files)" -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["spec"]["qos"]["iops"])')" = 100 ]
}

# The copies are of what was there: what the writer changes afterwards is not in them.
pods_copy() {
  local sum
  sum=$(in_pod writer '/bin/busybox sha256sum </files/data')
  kubectl apply -f "$root/tests/kubernetes/manifests/csi-copies.yaml"
  kubectl -n pods wait --for=jsonpath='{.status.readyToUse}'=true --timeout=400s volumesnapshot/moment
  until_true 400 claim_is clone Bound
  in_pod writer '/bin/busybox dd if=/dev/urandom of=/files/data bs=1M count=8 && /bin/busybox sync'
  kubectl -n pods wait --for=condition=Ready --timeout=600s pod/reader
  [ "$(in_pod reader '/bin/busybox sha256sum </restored/data')" = "$sum" ]
  [ "$(in_pod reader '/bin/busybox sha256sum </clone/data')" = "$sum" ]
}
claim_is() { [ "$(claim "$1" '{.status.phase}')" = "$2" ]; } # CLAIM PHASE

# A second node is given the shared disk, and where it cannot be put together the pod's events say why.
pods_shared() {
  kubectl apply -f "$root/tests/kubernetes/manifests/csi-elsewhere.yaml"
  until_true 400 attached shared node-1
  attached shared guest
  until_true 400 told_why
}
told_why() {
  kubectl -n pods get events --field-selector involvedObject.name=elsewhere,reason=FailedMapVolume -o 'jsonpath={.items[*].message}' |
    grep -q 'iscsiadm.*No such file or directory'
}

pods_topology() {
  until_true 400 claim_is local Bound
  [ "$(kubectl get pv "$(bound_to local)" -o 'jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*]}')" = \
    '{"key":"topology.csi.sluice.dev/node","operator":"In","values":["node-1"]}' ]
  [ -z "$(kubectl get pv "$(bound_to files)" -o 'jsonpath={.spec.nodeAffinity}')" ]
}

pods_plugin_restarts() {
  local name new
  name=$(plugin_of guest)
  kubectl -n sluice-system delete pod "$name" --wait
  until_true 200 plugin_of guest
  new=$(plugin_of guest)
  kubectl -n sluice-system wait --for=condition=Ready --timeout=400s "pod/$new"
  in_pod writer '/bin/busybox dd if=/dev/urandom of=/files/later bs=1M count=1 && /bin/busybox sync && /bin/busybox cmp -n 1 /files/data /files/data'
}
plugin_of() { # NODE
  local name
  name=$(kubectl -n sluice-system get pods -l app.kubernetes.io/name=sluice-csi-node --field-selector "spec.nodeName=$1" \
    -o 'jsonpath={.items[?(@.status.phase!="Failed")].metadata.name}')
  [ -n "$name" ] && echo "$name"
}

pods_end() {
  local kept
  kept=$(bound_to kept)
  [ -n "$kept" ]
  kubectl -n pods delete pods --all --timeout=600s
  # A snapshot is in use as long as a volume that was made of it shares its blocks, and a volume goes after its snapshots.
  kubectl -n pods delete pvc restored clone --timeout=400s
  until_true 400 made_are 5
  kubectl -n pods delete volumesnapshots --all --timeout=400s
  kubectl -n pods delete pvc --all --timeout=400s
  until_true 400 only_volume "$kept"
  [ "$(kubectl get pv "$kept" -o 'jsonpath={.status.phase}')" = Released ]
  sluice volume get "$kept"
  kubectl patch pv "$kept" --type=merge -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'
  until_true 120 no_volume
  [ -z "$(kubectl get volumeattachments -o name)" ]
  [ -z "$(drivers host)" ] # who has no volume may not log in
  kubectl delete namespace pods
}
drivers() { sluice "$1" list | awk '/^csi\./ {print $1}'; } # target|host : those that the driver made
# nothing_kept : the targets that the driver keeps have gone with the pools of gateways.
nothing_kept() {
  admin_connected
  [ -z "$(drivers target)" ]
  [ -z "$(drivers host)" ]
  ended port-forward
}
made() { kubectl get pv -o 'jsonpath={range .items[?(@.spec.csi.driver=="csi.sluice.dev")]}{.metadata.name}{"\n"}{end}'; }
stored() { sluice volume list -o json | grep -o '"pvc-[^"]*"' | tr -d '"' | sort -u; }
made_are() { [ "$(made | wc -l)" = "$1" ]; } # NUMBER
only_volume() { [ "$(made)" = "$1" ] && [ "$(stored)" = "$1" ]; } # NAME
no_volume() { [ -z "$(made)" ] && [ -z "$(stored)" ]; }

guest_leaves() {
  touch "$guest/shared/leave"
  until_true 300 test -s "$guest/shared/status"
  kubectl delete node guest
}

csi_say() {
  kubectl -n pods get pods,pvc,volumesnapshots -o wide || true
  kubectl get pv,csinodes,volumeattachments || true
  kubectl -n pods get events --sort-by=.lastTimestamp | tail -n 30 || true
  kubectl -n sluice-system logs deployment/sluice-csi-controller --all-containers --tail=15 || true
  kubectl -n sluice-system logs "$(plugin_of guest)" -c csi --tail=40 || true
  tail -n 40 "$guest/log" || true
}

pods_scenario() {
  check "each by the four portals of two gateways" pods_paths
  check "with the name of the class's CHAP secret" pods_authenticated
  check "the pod reads what it wrote" pods_write
  check "claims are expanded in use: the volumes, the disk, the file system" pods_expand
  check "a VolumeAttributesClass limits the volume" pods_limit
  check "a snapshot, a claim of it and a claim of a claim hold what there was" pods_copy
  check "a second node is given the shared disk; without open-iscsi its pod's events say so" pods_shared
  check "a volume on a node's disk tells the scheduler which, one in Ceph leaves it the choice" pods_topology
  check "the plugin's pod is replaced while its volumes are in use" pods_plugin_restarts
  check "deleted claims' volumes go, or stay where the class retains them" pods_end
}

csi_scenario() {
  check "one more node: a guest whose kernel has iSCSI and dm-multipath" guest_disk
  "$root/tests/guest/boot" -n 2 -m 3072 -t "${GUEST_LIMIT:-2400}" -d "$guest/shared" -q -drive -q "file=$guest/disk,format=raw,if=virtio,cache=unsafe" \
    "$root/tests/kubernetes/csi.guest" >"$guest/log" 2>&1 &
  check "sluicectl reaches the control plane as the chart's notes say" admin_connected
  check "it joins" until_true 600 guest_ready
  check "the registrar announced the driver to every kubelet" until_true 600 driver_known node-1 node-2 node-3 guest
  check "the provisioner makes volumes of claims: a pod has a file system, a disk, and a disk that is shared" pods_begin
  if ! grep -q '^FAIL' "$results"; then pods_scenario; fi
  if grep -q '^FAIL' "$results"; then csi_say; fi
  check "the guest leaves" guest_leaves
  take_results "$guest/log"
  cat "$guest/log"
  ended port-forward
}
