# Sourced after gateway.sh and machine.sh: the cluster that tests/package/cluster makes in the machine.
# shellcheck shell=bash disable=SC2154 # root comes from tier.sh

. "$root/tests/lib/cluster.sh"
certificates=/root/sluice-certs
ctl() {
  inside env SLUICE_TLS_CA=$certificates/ca.crt SLUICE_TLS_CERT=$certificates/admin.crt SLUICE_TLS_KEY=$certificates/admin.key sluicectl "$@"
}
both_ready() { until_true 60 gateway_ready 1 && until_true 60 gateway_ready 2; }
owned_by() { volume_owned orders && [ "$(volume_owner orders)" = "${1#gw-}" ]; } # GATEWAY

disk() { # NUMBER : the volume over that gateway
  echo "driver=iscsi,transport=tcp,portal=127.0.0.$1:3260,target=iqn.2026-11.dev.sluice:db,lun=0,initiator-name=iqn.2026-11.org.example:web"
}
host_writes() { timeout 60 qemu-io --image-opts -c "write -P $2 1M 64k" "$(disk "$1")"; } # NUMBER BYTE
host_reads() { timeout 60 qemu-io --image-opts -r -c "read -P $2 1M 64k" "$(disk "$1")"; } # NUMBER BYTE
