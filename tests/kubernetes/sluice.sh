# Sourced after cluster.sh: Sluice in the cluster, and a Ceph beside it.
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh, control from cluster.sh

ceph_start() {
  at_end+=("'$root/tests/lib/mini-ceph' destroy '$scratch/ceph'")
  ADDRESS=$control OSD_MIB=4096 "$root/tests/lib/mini-ceph" start "$scratch/ceph"
}

helm() { KUBECONFIG=$pki/admin.conf HELM_CACHE_HOME=$scratch/helm HELM_CONFIG_HOME=$scratch/helm HELM_DATA_HOME=$scratch/helm "$root/build/tools/helm" "$@"; }

# chart VERB ARGUMENT... : install or upgrade of the release, and waits until control plane and operator serve.
chart() {
  helm "$1" sluice "$root/charts/sluice" --namespace sluice-system --values "$root/tests/kubernetes/manifests/values.yaml" --wait \
    --timeout 8m "${@:2}"
}

namespace_make() {
  kubectl create namespace sluice-system
  kubectl -n sluice-system create secret generic nodes-chap --type=kubernetes.io/iscsi-chap \
    --from-literal=node.session.auth.username=nodes --from-literal="node.session.auth.password=$(openssl rand -hex 8)"
}

# sluice_install : what is there now, or an earlier revision of it, with the values that it was tested with then.
sluice_install() {
  local earlier=$programs/before/current
  namespace_make
  if [ -n "${BEFORE:-}" ]; then
    helm install sluice-crds "$earlier/charts/sluice-crds" --namespace sluice-system
    helm install sluice "$earlier/charts/sluice" --namespace sluice-system --values "$earlier/values.yaml" --set image.tag=before --wait --timeout 8m
  else
    helm install sluice-crds "$root/charts/sluice-crds" --namespace sluice-system
    chart install
  fi
}

# sluice_uninstall : as the chart's README says.
sluice_uninstall() {
  kubectl delete targets.sluice.dev,hosts.sluice.dev,snapshots.sluice.dev,volumes.sluice.dev --all --all-namespaces --timeout=240s
  kubectl delete gatewaypools.sluice.dev,storagepools.sluice.dev,fabrics.sluice.dev --all --timeout=240s
  if [ -d "$guest/admin" ]; then nothing_kept; fi # pods have had disks
  helm uninstall sluice --namespace sluice-system --wait --timeout 4m || { kubectl -n sluice-system logs job/sluice-uninstall-guard; return 1; }
}

# sluice_leaves : what is left of a release is what keeps a system's identity and data, and what is Kubernetes' own. What was a gateway's
# goes with it when Kubernetes' collector of garbage gets there.
sluice_leaves() {
  until_true 60 no_pods
  until_true 120 only_stays >/dev/null || { only_stays; return 1; }
  [ -z "$(CEPH_CONF=$scratch/ceph/ceph.conf rbd ls rbd)" ] # reclaimPolicy was Delete
}
only_stays() { diff <(sort "$root/tests/kubernetes/manifests/stays") <(left_over | sort -u); }
left_over() {
  # Each upgrade of the CRDs is a release of its own.
  kubectl -n sluice-system get pods,jobs,deployments,statefulsets,daemonsets,services,configmaps,secrets,persistentvolumeclaims,\
serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,leases -o name | sed 's/\(sluice-crds\.v\)[0-9]*$/\11/'
  kubectl get clusterroles,clusterrolebindings,csidrivers,storageclasses,customresourcedefinitions -o name | grep sluice
}
no_pods() { [ -z "$(kubectl -n sluice-system get pods -o name)" ]; }

# ready KIND/NAME... : all of them, in their users' namespace
ready() { kubectl -n shop wait --for=condition=Ready --timeout="${limit:-240}s" "$@"; }

# cluster_anew : nothing of an earlier release is left, as in a cluster that never had one.
cluster_anew() {
  rm -rf "$guest/admin" # what connected to the control plane before
  helm uninstall sluice-crds --namespace sluice-system
  kubectl get crds -o name | grep 'sluice\.dev$' | xargs "$programs/kubectl" --kubeconfig "$pki/admin.conf" delete
  kubectl delete namespace sluice-system shop --timeout=120s
  kubectl delete pv etcd --timeout=60s
  rm -rf "$kube/node-2/local/etcd"/*
  kubectl apply -f "$root/tests/kubernetes/manifests/kubernetes.yaml"
}

storage_apply() {
  local monitor key
  monitor=$(sed -n 's/^mon_host = \[v2:\([0-9.:]*\)\].*/\1/p' "$scratch/ceph/ceph.conf")
  key=$(sed -n 's/^\s*key = //p' "$scratch/ceph/gateway.keyring")
  sed -e "s|@MONITOR@|$monitor|; s|@CEPH_KEY@|$key|" "$root/tests/kubernetes/manifests/storage.yaml.in" | kubectl apply -f -
}

gateways_ready() { # HOW-MANY : as many are wanted, and all of them serve from the newest template
  local status
  status=$(kubectl get gatewaypool.sluice.dev gateways -o \
    'jsonpath={.status.replicas} {.status.readyReplicas} {.status.updatedReplicas} {.status.conditions[?(@.type=="Progressing")].status}')
  [ "$status" = "$1 $1 $1 False" ]
}
