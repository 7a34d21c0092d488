# shellcheck shell=bash
# What run.sh and experiments share: building, the interpreter, a private network. To be sourced.
bench_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

build_programs() {
  local build=$bench_root/build/bench
  cmake -S "$bench_root/bench" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
  cmake --build "$build" --parallel 2 -- --quiet
}

# The first interpreter that can plot; Debian's matplotlib belongs to Debian's python3.
python_that_plots() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import matplotlib' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo python3
}

# A network namespace of our own: the congestion control of every socket can be fixed there without
# changing the machine's, ports are free, and the loopback device carries no other packets.
run_in_network() {
  local network=()
  if unshare --net true 2>/dev/null; then
    network=(unshare --net)
  elif unshare --map-root-user --net true 2>/dev/null; then
    network=(unshare --map-root-user --net)
  fi
  # shellcheck disable=SC2016  # expanded by the inner shell
  local inside='if [ -n "$SLUICE_BENCH_PRIVATE_NETWORK" ]; then ip link set lo up; fi; exec "$@"'
  if [ ${#network[@]} -gt 0 ]; then
    SLUICE_BENCH_PRIVATE_NETWORK=1 exec "${network[@]}" -- sh -c "$inside" sh "$@"
  fi
  SLUICE_BENCH_PRIVATE_NETWORK='' exec "$@"
}
