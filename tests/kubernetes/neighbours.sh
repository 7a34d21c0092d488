# Sourced by run: Sluice in a cluster that has cert-manager, and Prometheus with its operator. The one issues and renews its certificates,
# the other scrapes its parts and has its alerts.
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh, the rest from cluster.sh

neighbours_come() {
  kubectl apply --server-side -f "$programs/certificates.yaml" -f "$programs/monitoring.yaml"
  kubectl wait --for=condition=Established --timeout=60s crd/certificates.cert-manager.io crd/prometheuses.monitoring.coreos.com
  kubectl apply -f "$root/tests/kubernetes/manifests/neighbours.yaml"
  kubectl -n neighbours rollout status deployment/cert-manager --timeout=120s
  kubectl -n neighbours rollout status deployment/prometheus-operator --timeout=120s
}

neighbourly_install() {
  namespace_make
  helm install sluice-crds "$root/charts/sluice-crds" --namespace sluice-system
  chart install --set tls.mode=cert-manager,monitoring.enabled=true,monitoring.labels.release=all,monitoring.interval=2s
}

certificates_ready() {
  kubectl -n sluice-system wait --for=condition=Ready --timeout=60s certificates --all
  [ "$(kubectl -n sluice-system get certificates -o name | wc -l)" = 5 ]
}

served() { storage_apply && until_true 240 gateways_ready 3 && ready volume/database volume/scratch target/disks storagepool/ceph storagepool/node-1; }

# presented : the number of the certificate that the control plane shows to who connects, also to who has none and is sent away.
presented() {
  local at
  at=$(kubectl -n sluice-system get pod sluice-controlplane-0 -o 'jsonpath={.status.podIP}')
  { openssl s_client -connect "$at:7460" </dev/null 2>/dev/null || true; } | openssl x509 -noout -serial
}
is_another() { local now; now=$(presented) && [ -n "$now" ] && [ "$now" != "$1" ]; } # SERIAL

# renew CERTIFICATE... : as cert-manager's own command line asks for it.
renew() {
  local each
  for each in "$@"; do
    kubectl -n sluice-system patch certificate "$each" --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Issuing",
      "status":"True","reason":"ManuallyTriggered","message":"the test asks for it"}]}}'
  done
}
renewed() { # CERTIFICATE REVISION
  [ "$(kubectl -n sluice-system get certificate "$1" -o 'jsonpath={.status.revision}')" = "$2" ]
}

certificates_renewed() {
  local before each all=(sluice-controlplane-tls sluice-operator-tls sluice-csi-tls sluice-admin-tls)
  before=$(presented)
  [ -n "$before" ]
  renew "${all[@]}"
  for each in "${all[@]}"; do until_true 60 renewed "$each" 2; done
  until_true 240 is_another "$before"
  # Who lost its connection to what the new one replaces comes back with its own.
  kubectl -n sluice-system delete pod -l app.kubernetes.io/name=sluice-controlplane --wait
  kubectl -n shop patch volume.sluice.dev database --type=merge -p '{"spec":{"size":"512Mi"}}'
  until_true 120 grown database 512Mi
  until_true 240 gateways_ready 3
}
grown() { [ "$(kubectl -n shop get volume.sluice.dev "$1" -o 'jsonpath={.status.capacity}')" = "$2" ]; } # VOLUME SIZE

prometheus() { kubectl get --raw "/api/v1/namespaces/neighbours/pods/prometheus-all-0:9090/proxy/api/v1/$1"; } # PATH

# One control plane, one operator, three gateways, the CSI driver's controller and its part on every node.
all_scraped() {
  local nodes
  nodes=$(kubectl -n sluice-system get daemonset sluice-csi-node -o 'jsonpath={.status.desiredNumberScheduled}')
  prometheus targets | python3 -c '
import collections, json, sys
up = collections.Counter()
for target in json.load(sys.stdin)["data"]["activeTargets"]:
    if target["health"] == "up":
        up[target["scrapePool"].split("/")[2]] += 1
wanted = {"sluice-controlplane": 1, "sluice-operator": 1, "sluice-gateway": 3, "sluice-csi-controller": 1, "sluice-csi-node": int(sys.argv[1])}
sys.exit(0 if up == wanted else str(dict(up)))' "$nodes"
}

# Each alert of the chart is there and can be evaluated, and nothing is on fire.
all_evaluated() {
  prometheus rules | python3 -c '
import json, sys
rules = [rule for group in json.load(sys.stdin)["data"]["groups"] for rule in group["rules"] if rule["type"] == "alerting"]
bad = [(rule["name"], rule["health"], rule["state"]) for rule in rules if rule["health"] != "ok" or rule["state"] == "firing"]
wanted = sum(line.strip().startswith("- alert:") for line in open(sys.argv[1]))
sys.exit(0 if not bad and len(rules) == wanted else f"{len(rules)} of {wanted}, {bad}")' "$root/charts/sluice/files/alerts.yaml"
}

# What the dashboards and alerts tell gateways apart by.
gateways_named() {
  prometheus 'query?query=count(count%20by%20(gateway,gateway_pool)(sluice_gateway_build_info%7Bgateway_pool%3D%22gateways%22%7D))' | grep -q '"3"\]'
}

neighbours_go() {
  sluice_uninstall
  until_true 60 no_pods
  [ -z "$(kubectl -n sluice-system get certificates,issuers,servicemonitors,podmonitors,prometheusrules -o name)" ]
  kubectl delete -f "$root/tests/kubernetes/manifests/neighbours.yaml" --wait
}

neighbours_say() {
  kubectl -n sluice-system get certificates,certificaterequests,issuers -o wide || true
  kubectl -n neighbours get pods -o wide || true
  prometheus targets | python3 -c 'import json, sys
for each in json.load(sys.stdin)["data"]["activeTargets"]: print(each["scrapePool"], each["health"], each["lastError"])' || true
  kubectl -n neighbours logs deployment/cert-manager --tail=20 || true
  kubectl -n neighbours logs deployment/prometheus-operator --tail=20 || true
}

neighbours_scenario() {
  check "a cluster as if there had never been a Sluice, for one with neighbours" cluster_anew
  check "cert-manager, and Prometheus' operator with a Prometheus" neighbours_come
  check "the chart with certificates of cert-manager, and monitored" neighbourly_install
  check "cert-manager has issued all five certificates" certificates_ready
  check "with these, gateways and volumes become ready" served
  check "Prometheus scrapes every part" until_true 240 all_scraped
  check "gateways have their names and pools in what it scrapes" until_true 60 gateways_named
  check "it has every alert of the chart, and none is firing" until_true 60 all_evaluated
  check "renewed certificates are used without a restart, by new connections too" certificates_renewed
  if grep -q '^FAIL' "$results"; then neighbours_say; fi
  check "all is uninstalled, and nothing of it asks for certificates or scrapes" neighbours_go
}
