# shellcheck shell=sh
# Every portal writes a pattern of its own and reads it; then every portal reads what all others wrote.
set -eu
initiator=iqn.2026-11.dev.sluice:helm-test
io() { # URL COMMAND
  place=${1#iscsi://} # portal/target/lun
  name=${place#*/}
  options="driver=iscsi,transport=tcp,portal=${place%%/*},target=${name%/*},lun=${name##*/},initiator-name=$initiator"
  out=$(qemu-io --image-opts -c "$2" "$options" 2>&1) || { echo "$1: $2: $out"; exit 1; }
  case $out in *"verification failed"* | *rror*) echo "$1: $2: $out"; exit 1 ;; esac
}
count=0
while read -r url; do
  io "$url" "write -P $((count + 1)) ${count}M 1M"
  count=$((count + 1))
done </portals/urls
[ "$count" -gt 0 ] || { echo "the target has no portals"; exit 1; }
while read -r url; do
  i=0
  while [ "$i" -lt "$count" ]; do
    io "$url" "read -P $((i + 1)) ${i}M 1M"
    i=$((i + 1))
  done
  echo "$url: 1 MiB written, $count MiB verified"
done </portals/urls
