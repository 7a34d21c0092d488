#!/usr/bin/env python3
"""Runs experiments one after the other, each by its own `run`, then makes their report."""

import argparse
import json
import os
import subprocess
import sys
import time

BENCH = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, BENCH)

from experiments.frame import stopping  # noqa: E402
from report import build  # noqa: E402
from runner import setup  # noqa: E402

FOLDER = os.path.join(BENCH, "experiments")
LINES = "experiments.jsonl"
# Seconds that an experiment has after Ctrl-C, which it gets as well, to clean up; a signal to this process alone, or a
# second one while it cleans up, would leave it running.
INTERRUPTED = 30


def known():
    """All experiments: the folders with a `run`."""
    return sorted(
        name for name in os.listdir(FOLDER) if os.access(os.path.join(FOLDER, name, "run"), os.X_OK)
    )


def parse_args(argv):
    p = argparse.ArgumentParser(description=__doc__, epilog="known: " + ", ".join(known()))
    p.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    mode = p.add_mutually_exclusive_group()
    for name in ("short", "full", "smoke"):
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name)
    p.set_defaults(mode="short")
    p.add_argument("--rounds", type=int)
    p.add_argument("--budget", type=float, help="seconds; none starts when they are over")
    p.add_argument("--bin", default=os.path.join(setup.ROOT, "build/bin"))
    p.add_argument("--out", help="folder of the lines and their reports (default: build/bench/results/DATE)")
    p.add_argument("--reports", help="folder that a copy of the reports goes to (default: build/bench/reports; with --out or --smoke: none)")
    p.add_argument("--list", action="store_true", help="name the experiments, and do nothing")
    args = p.parse_args(argv)
    unknown = set(args.names) - set(known())
    if unknown:
        p.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(known())}")
    return args


def append(path, line):
    with open(path, "a") as f:
        f.write(json.dumps(line) + "\n")


def run_one(name, args, path):
    """Its exit status; why it could not run goes to its lines."""
    command = [os.path.join(FOLDER, name, "run"), "--out", path, f"--{args.mode}",
               "--bin", args.bin]  # fmt: skip
    if args.rounds:
        command += ["--rounds", str(args.rounds)]
    started = time.monotonic()
    print(f"== {name}", flush=True)
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                             env=os.environ | {"SLUICE_BENCH_BUILT": "1"})  # fmt: skip
    said = []
    try:
        for text in child.stderr:
            sys.stderr.write(text)
            said.append(text.strip())
        status = child.wait()
    except KeyboardInterrupt:
        try:
            child.wait(timeout=INTERRUPTED)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.wait()
        raise
    except SystemExit:
        child.terminate()
        child.wait()
        raise
    took = time.monotonic() - started
    print(f"== {name}: {took:.0f} s, status {status}", flush=True)
    append(path, {"experiment": name, "facts": {"seconds": round(took)}})
    if status != 0:
        why = " ".join(said[-3:]) or f"it ended with status {status}"
        append(path, {"experiment": name, "skipped": why})
    return status


def run_all(args, path):
    """Those that broke."""
    started, broken = time.monotonic(), []
    for name in args.names or known():
        if args.budget and time.monotonic() - started > args.budget:
            why = f"the budget of {args.budget:.0f} s was used up (--budget)"
            append(path, {"experiment": name, "skipped": why})
            print(f"== {name}: {why}", flush=True)
        elif run_one(name, args, path) not in (0, 2):
            broken.append(name)
    return broken


def main(argv):
    args = parse_args(argv)
    stopping.install()
    if args.list:
        print("\n".join(known()))
        return 0
    out = args.out or os.path.join(build.RESULTS, time.strftime("experiments-%Y%m%d-%H%M%S"))
    reports = args.reports or (None if args.out or args.mode == "smoke" else build.REPORTS)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, LINES)
    with open(path, "w"):
        pass  # lines of an earlier run would count as further rounds
    append(path, {"facts": build.machine_facts()})
    broken = run_all(args, path)
    for directory in [out, *([reports] if reports else [])]:
        for written in build.build([path], directory):
            print(f"written: {written}")
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
