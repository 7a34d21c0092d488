# Sourced by run: the way from nothing to a multipathed disk, as the chart's README has it, command by command. What the reader has to
# put in for addresses is put in here; nothing else is changed.
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh, the rest from cluster.sh

way=$scratch/way

# way_in_cluster : where kubectl, helm and ceph are, and the files that they leave for the host.
way_in_cluster() {
  local monitor
  monitor=$(sed -n 's/^mon_host = \[v2:\([0-9.:]*\)\].*/\1/p' "$scratch/ceph/ceph.conf")
  mkdir -p "$way"
  ln -s "$root/charts" "$way/charts"
  "$root/tests/kubernetes/steps" "$root/charts/sluice/README.md" cluster | sed "s|192\.0\.2\.1:3300|$monitor|" >"$way/script"
  (
    cd "$way" || exit
    export KUBECONFIG=$pki/admin.conf CEPH_CONF=$scratch/ceph/ceph.conf PATH=$programs:$root/build/tools:$root/build/bin:$PATH
    export HELM_CACHE_HOME=$scratch/helm HELM_CONFIG_HOME=$scratch/helm HELM_DATA_HOME=$scratch/helm
    unset -f kubectl helm
    bash -exuo pipefail script
  )
}

way_on_host() {
  local portal
  portal=$(kubectl -n shop get target.sluice.dev db -o 'jsonpath={.status.portals}')
  mkdir -p "$way/shared"
  cp "$way"/{host-config,web-chap} "$way/shared/"
  "$root/tests/kubernetes/steps" "$root/charts/sluice/README.md" host | sed "s|192\.0\.2\.11:3260|${portal%%[, ]*}|" >"$way/shared/way"
  "$root/tests/guest/boot" -n 2 -t 900 -d "$way/shared" "$root/tests/kubernetes/readme.guest" 2>&1 | tee "$way/said"
}

readme_scenario() {
  local begun
  check "a cluster as if there had never been a Sluice" cluster_anew
  begun=$SECONDS
  check "the commands of the chart's README, in the cluster" way_in_cluster
  if ! grep -q '^FAIL' "$results"; then
    way_on_host || true
    take_results "$way/said"
    echo "README path: $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s, from the first command to the multipathed disk"
  fi
}
