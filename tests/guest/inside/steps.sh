# Sourced by the scripts that run in the guest: numbered steps, checks, the way to the host.
# shellcheck shell=bash
set -uo pipefail

step_number=0

# step CLAIM COMMAND... : runs the command; prints `PASS CLAIM` or `FAIL CLAIM` with what it said.
step() {
  local claim=$1 status=0 begun
  shift
  step_number=$((step_number + 1))
  begun=${EPOCHREALTIME/./}
  "$@" >/tmp/step.log 2>&1 || status=$?
  if [ "$status" = 0 ]; then
    printf 'PASS %02d %s (%d ms)\n' "$step_number" "$claim" $(((${EPOCHREALTIME/./} - begun) / 1000))
  else
    printf 'FAIL %02d %s: status %d: %s\n' "$step_number" "$claim" "$status" \
      "$(tail -n 4 /tmp/step.log | tr -s ' \n' ' ')"
    sed 's/^/    | /' /tmp/step.log | tail -n 40
  fi
  return 0
}

# until_true SECONDS COMMAND... : tries until the command succeeds.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not true in time: $*"
      return 1
    fi
    sleep 0.1
  done
}

refused() { ! "$@"; }

# host WORDS... : asks the host's side of the scenario to do something and waits until it has.
host() {
  local answer
  echo "$*" >&7
  read -r answer <&7
  [ "$answer" = "done" ] || { echo "host: $* -> $answer"; return 1; }
}
exec 7<>/dev/virtio-ports/host
