#!/bin/bash
# Builds the benchmark's programs and runs it: bench/run.sh [--full | --smoke | --test] [options]
# Options are those of run.py (--help); --no-build skips building. See README.md.
set -euo pipefail

. "$(dirname "$(readlink -f "$0")")/lib.sh"
root=$bench_root
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

if [ "$make" = yes ]; then build_programs; fi
python=$(python_that_plots)

if [ "$test_first" = yes ]; then
  ctest --test-dir "$root/build/bench" --output-on-failure --no-tests=error
  cd "$root/bench"
  (run_in_network "$python" -m unittest discover --start-directory tests --top-level-directory .)
fi
run_in_network "$python" "$root/bench/run.py" "${args[@]}"
