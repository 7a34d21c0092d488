#!/usr/bin/env python3
"""Runs one experiment: main.py NAME --out FILE [--short | --full | --smoke] ... (../README.md)."""

import argparse
import contextlib
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(os.path.dirname(HERE))
ROOT = os.path.dirname(BENCH)
sys.path.insert(0, BENCH)

from experiments.frame import options, stopping  # noqa: E402
from runner import machine  # noqa: E402


def parse_args(argv):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("name", help="the experiment's folder")
    p.add_argument("--out", required=True, help="file that the lines are appended to")
    mode = p.add_mutually_exclusive_group()
    for name in options.ROUNDS:
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name)
    p.set_defaults(mode="short")
    p.add_argument("--rounds", type=int, help="rounds per cell")
    p.add_argument("--bin", default=os.path.join(ROOT, "build/bin"), help="the gateway's folder")
    p.add_argument("--programs", default=os.path.join(ROOT, "build/bench/bin"))
    p.add_argument("--scratch", default=os.path.join(ROOT, "build/bench"), help="on a disk")
    p.add_argument("--target-core", type=int, default=0)
    p.add_argument("--client-core", type=int, default=1)
    p.add_argument("--nice", type=int, default=0, help="of targets and client alike")
    p.add_argument("--realtime", action="store_true", help="SCHED_FIFO for targets and client")
    return p.parse_args(argv)


def experiment(name):
    """The module; loaded by its path, since a folder's name need not be a Python name."""
    path = os.path.join(BENCH, "experiments", name, "run.py")
    spec = importlib.util.spec_from_file_location(f"experiment_{name.replace('-', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(argv):
    args = parse_args(argv)
    stopping.install()
    if not {args.target_core, args.client_core} <= os.sched_getaffinity(0):
        raise options.CannotRun("target and client need a core each (--target-core, --client-core)")
    gateway = os.path.join(args.bin, "sluice-gateway")
    if not os.access(gateway, os.X_OK):
        raise options.CannotRun(f"{gateway} is not built (make build-gateway, or --bin)")
    private = os.environ.get("SLUICE_BENCH_PRIVATE_NETWORK") == "1"
    congestion = machine.fix_congestion(private)
    with contextlib.ExitStack() as cleanup:
        chosen = options.make_options(args, congestion, cleanup)
        chosen.emit(
            {"facts": {"congestion": congestion, "private_network": private, "mode": args.mode,
                       "rounds": chosen.rounds}}
        )  # fmt: skip
        experiment(args.name).run(chosen)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except options.FAILURES as e:
        print(f"{sys.argv[1]}: can't run: {e}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
