# Sourced by every tier's run script: a scratch folder, results, a clean end.
# shellcheck shell=bash
set -euo pipefail
shopt -s inherit_errexit

# shellcheck disable=SC2034 # for the scripts that source this
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sluice.XXXXXX")
results=${SLUICE_RESULTS:-$scratch/results.txt}

# --- results, one line each

passed() { echo "PASS $*" | tee -a "$results"; }
failed() { echo "FAIL $*" | tee -a "$results"; }
skipped() { echo "SKIP $*" | tee -a "$results"; }

# skip_all REASON : this machine cannot run the tier; that is a result, too.
skip_all() {
  skipped "$*"
  exit 0
}

# check CLAIM COMMAND... : the claim holds if the command succeeds.
check() {
  local claim=$1 begun=${EPOCHREALTIME/./} log=$scratch/check.log status
  shift
  # Not the condition of an `if`: bash ignores set -e in there, and only the last step would count.
  set +e
  (set -e; "$@") >"$log" 2>&1
  status=$?
  set -e
  if [ "$status" = 0 ]; then
    passed "$claim ($(((${EPOCHREALTIME/./} - begun) / 1000)) ms)"
  else
    failed "$claim: $(tail -n 3 "$log" | tr -s '\n ' ' ')"
    sed 's/^/    | /' "$log"
  fi
}

# check_fails CLAIM COMMAND... : the claim holds if the command fails by itself (no signal, no timeout).
check_fails() {
  local claim=$1
  shift
  # shellcheck disable=SC2317 # called by check
  fails() {
    local status=0
    "$@" || status=$?
    echo "status $status"
    [ "$status" != 0 ] && [ "$status" -lt 124 ]
  }
  check "$claim" fails "$@"
}

# take_results FILE : adopts the PASS, FAIL and SKIP lines that something else printed.
take_results() { { grep -E '^(PASS|FAIL|SKIP) ' "$1" || true; } >>"$results"; }

# until_true SECONDS COMMAND... : tries until the command succeeds; fails when time is over.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not true in time: $*" >&2
      return 1
    fi
    sleep 0.05
  done
}

# --- a world of its own

# isolate "$0" "$@" : runs the script again with its own network (loopback only), processes and mounts.
# Whatever it leaves behind ends with it, even when it is killed.
isolate() {
  if [ -z "${SLUICE_ISOLATED:-}" ]; then
    local as=()
    [ "$(id -u)" = 0 ] || as=(--user --map-root-user)
    if ! unshare "${as[@]}" --net --mount --pid --fork --mount-proc true 2>/dev/null; then
      skip_all "no namespaces here (unshare refused)"
    fi
    rm -rf "$scratch"
    export SLUICE_ISOLATED=1
    exec unshare "${as[@]}" --net --mount --pid --fork --kill-child --mount-proc "$@"
  fi
  ip link set lo up
  # What is shared between processes goes with them, also when they were killed.
  mount -t tmpfs tmpfs /dev/shm
}

# --- the end: children, loop devices, scratch

at_end=()
finish() {
  local status=$? step
  trap - EXIT
  for step in "${at_end[@]}"; do eval "$step" 2>/dev/null || true; done
  local pids
  mapfile -t pids < <(jobs -p)
  if [ "${#pids[@]}" -gt 0 ]; then
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  umount -l "$scratch" 2>/dev/null || true
  # Who watches a process for a child of ours is no job of this shell, and notes there once how it ended.
  for _ in {1..50}; do
    if rm -rf "$scratch" 2>/dev/null; then break; fi
  done
  exit "$status"
}

trap finish EXIT
trap 'exit 130' INT TERM
