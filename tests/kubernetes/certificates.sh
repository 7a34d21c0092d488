# Sourced: the certificates of a throw-away Kubernetes, and how each program reaches the API server. Folder: $pki.
# shellcheck shell=bash disable=SC2154 # pki and control come from cluster.sh

# certificate NAME SUBJECT EXTENSION... : NAME.crt and NAME.key, signed by the cluster's authority.
certificate() {
  local name=$1 subject=$2
  shift 2
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$pki/$name.key" -out "$pki/$name.csr" -subj "$subject"
  openssl x509 -req -in "$pki/$name.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 2 -out "$pki/$name.crt" \
    -extfile <(printf '%s\n' "$@")
}

# kubeconfig NAME : NAME.conf, with which the holder of that certificate reaches the API server.
kubeconfig() {
  cat >"$pki/$1.conf" <<END
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$control:6443", certificate-authority: $pki/ca.crt}}]
users: [{name: $1, user: {client-certificate: $pki/$1.crt, client-key: $pki/$1.key}}]
contexts: [{name: test, context: {cluster: test, user: $1}}]
current-context: test
END
}

# certificates_make NODES
certificates_make() {
  local i name client=extendedKeyUsage=clientAuth
  mkdir -p "$pki"
  {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "$pki/ca.key" -out "$pki/ca.crt" -subj /CN=test
    openssl genrsa -out "$pki/accounts.key" 2048
    openssl rsa -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub"
    certificate apiserver /CN=kube-apiserver extendedKeyUsage=serverAuth \
      "subjectAltName=IP:$control,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:localhost"
    certificate kubelets-client /O=system:masters/CN=kubelets-client $client
    certificate admin /O=system:masters/CN=admin $client
    for name in kube-controller-manager kube-scheduler kube-proxy; do certificate "$name" "/CN=system:$name" $client; done
    for ((i = 1; i <= $1; i++)); do
      certificate "node-$i" "/O=system:nodes/CN=system:node:node-$i" extendedKeyUsage=clientAuth,serverAuth \
        "subjectAltName=DNS:node-$i,IP:10.77.0.1$i"
    done
  } >>"$kube/openssl.log" 2>&1
  for name in admin kube-controller-manager kube-scheduler kube-proxy; do kubeconfig "$name"; done
  for ((i = 1; i <= $1; i++)); do kubeconfig "node-$i"; done
}
