#!/bin/bash
# Builds the benchmark's programs and runs it: bench/run.sh [--full | --smoke | --test] [options]
# Options are those of run.py (--help); --no-build skips building. See README.md.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/bench
test_first=no
make=yes
args=()
for arg in "$@"; do
  case $arg in
    --no-build) make=no ;;
    --test) test_first=yes ;;
    *) args+=("$arg") ;;
  esac
done

if [ "$make" = yes ]; then
  cmake -S "$root/bench" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
  cmake --build "$build" --parallel 2 -- --quiet
fi

# The first interpreter that can plot; Debian's matplotlib belongs to Debian's python3.
python=python3
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import matplotlib' 2>/dev/null; then
    python=$candidate
    break
  fi
done

# A network namespace of our own: the congestion control of every socket can be fixed there without
# touching the machine's, ports are free, and nobody else's packets run on our loopback.
network=()
if unshare --net true 2>/dev/null; then
  network=(unshare --net)
elif unshare --map-root-user --net true 2>/dev/null; then
  network=(unshare --map-root-user --net)
fi

# shellcheck disable=SC2016  # expanded by the inner shell
inside='if [ -n "$SLUICE_BENCH_PRIVATE_NETWORK" ]; then ip link set lo up; fi; exec "$@"'
run_in() {
  if [ ${#network[@]} -gt 0 ]; then
    SLUICE_BENCH_PRIVATE_NETWORK=1 exec "${network[@]}" -- sh -c "$inside" sh "$@"
  fi
  SLUICE_BENCH_PRIVATE_NETWORK='' exec "$@"
}

if [ "$test_first" = yes ]; then
  ctest --test-dir "$build" --output-on-failure --no-tests=error
  cd "$root/bench"
  (run_in "$python" -m unittest discover --start-directory tests --top-level-directory .)
fi
run_in "$python" "$root/bench/run.py" "${args[@]}"
