# Sourced after tier.sh: starts and stops gateways. A gateway is known by a short name and leaves
# $scratch/NAME.log and, while it runs, its pid in gateway_pids[NAME].
# shellcheck shell=bash disable=SC2154 # root and scratch come from tier.sh

gateway=${SLUICE_GATEWAY:-$root/build/bin/sluice-gateway}
# shellcheck disable=SC2034 # for the scripts that source this
iqn=iqn.2026-11.dev.sluice:test
declare -A gateway_pids=()

listens() { # HOST:PORT
  (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null
}

# gateway_start NAME HOST:PORT ARGUMENT... : returns once the portal accepts connections.
gateway_start() {
  local name=$1 portal=$2 log=$scratch/$1.log pid
  shift 2
  "$gateway" --listen "$portal" "$@" >>"$log" 2>&1 </dev/null &
  pid=$!
  gateway_pids[$name]=$pid
  local end=$((SECONDS + 20))
  until listens "$portal"; do
    if ! kill -0 "$pid" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then
      echo "gateway $name doesn't listen on $portal:" >&2
      tail -n 20 "$log" >&2
      return 1
    fi
    sleep 0.05
  done
}

gateway_alive() { kill -0 "${gateway_pids[$1]}" 2>/dev/null; }

gateway_signal() { kill "-$2" "${gateway_pids[$1]}"; } # NAME SIGNAL

# gateway_stop NAME : asks it to stop; its exit status. More than 15 s is a failure (124).
gateway_stop() {
  local pid=${gateway_pids[$1]} status=0 guard
  kill -TERM "$pid" 2>/dev/null || true
  (
    sleep 15
    kill -KILL "$pid" 2>/dev/null
  ) &
  guard=$!
  wait "$pid" || status=$?
  kill "$guard" 2>/dev/null || true
  wait "$guard" 2>/dev/null || true
  unset "gateway_pids[$1]"
  if [ "$status" = 137 ]; then
    echo "gateway $1 did not stop within 15 s" >&2
    return 124
  fi
  return "$status"
}

gateway_memory_kb() { awk '$1 == "VmRSS:" {print $2}' "/proc/${gateway_pids[$1]}/status"; }
