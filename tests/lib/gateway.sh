# Sourced after tier.sh: starts and stops gateways. A gateway has a short name; $scratch/NAME.log is its log,
# NAME.pid its pid while it runs, NAME.exit its exit status after, NAME.socket its admin socket.
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh

gateway=${SLUICE_GATEWAY:-$root/build/bin/sluice-gateway}
# shellcheck disable=SC2034 # for the scripts that source this
iqn=iqn.2026-11.dev.sluice:test

listens() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; } # HOST:PORT

gateway_pid() { cat "$scratch/$1.pid"; }
gateway_alive() { [ ! -e "$scratch/$1.exit" ] && kill -0 "$(gateway_pid "$1")" 2>/dev/null; }
gateway_signal() { kill "-$2" "$(gateway_pid "$1")"; } # NAME SIGNAL
gateway_memory_kb() { awk '$1 == "VmRSS:" {print $2}' "/proc/$(gateway_pid "$1")/status"; }
gateway_gone() { [ -e "$scratch/$1.exit" ]; }

# gateway_run NAME HOST:PORT ARGUMENT... : starts one; returns once its portal HOST:PORT takes connections.
gateway_run() {
  local name=$1 portal=$2 end=$((SECONDS + 20))
  shift 2
  rm -f "$scratch/$name".{pid,exit}
  (
    status=0
    # shellcheck disable=SC2016 # the inner shell expands it
    bash -c 'echo $$ >"$1"; shift; exec "$@"' gateway "$scratch/$name.pid" "$gateway" "$@" \
      --state-dir "$scratch/$name.state" --admin-socket "$scratch/$name.socket" \
      >>"$scratch/$name.log" 2>&1 </dev/null || status=$?
    echo "$status" >"$scratch/$name.exit"
  ) &
  at_end+=("kill -KILL \$(cat '$scratch/$name.pid')")
  until listens "$portal"; do
    if gateway_gone "$name" || [ "$SECONDS" -ge "$end" ]; then
      echo "gateway $name doesn't listen on $portal:" >&2
      tail -n 20 "$scratch/$name.log" >&2
      return 1
    fi
    sleep 0.05
  done
}

# gateway_start NAME HOST:PORT ARGUMENT... : the same for a gateway that is configured by arguments only.
gateway_start() {
  local name=$1 portal=$2
  shift 2
  gateway_run "$name" "$portal" --listen "$portal" "$@"
}

# gateway_sessions NAME ARGUMENT... : what `sluice-gateway sessions` says about it.
gateway_sessions() {
  local name=$1
  shift
  "$gateway" sessions --socket "$scratch/$name.socket" "$@"
}

# gateway_stop NAME : asks it to stop, returns its exit status; 124 if it takes more than 15 s.
gateway_stop() {
  local name=$1
  kill -TERM "$(gateway_pid "$name")" 2>/dev/null || true
  if ! until_true 15 gateway_gone "$name"; then
    kill -KILL "$(gateway_pid "$name")" 2>/dev/null || true
    tail -n 5 "$scratch/$name.log"
    echo "it still ran after 15 s"
    return 124
  fi
  local status
  status=$(cat "$scratch/$name.exit")
  if [ "$status" != 0 ]; then
    tail -n 5 "$scratch/$name.log"
    echo "it ended with status $status"
  fi
  return "$status"
}
