#!/usr/bin/env python3
"""Runs the benchmark: targets alternate within each cell, one client drives them. See README.md."""

import argparse
import contextlib
import dataclasses
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from report import build, engine, style
from runner import cells, check, machine, measure, stats, takeover, targets
from runner.setup import DISK, ROOT, SHM, Setup, make_files, remove_files, remove_stale_files

MODES = {  # rounds, window, warm-up, seconds
    "pruned": (5, 0.8, 0.2),
    "full": (5, 0.8, 0.2),
    "smoke": (1, 0.1, 0.05),
}


def parse_args(argv):
    p = argparse.ArgumentParser(description=__doc__)
    mode = p.add_mutually_exclusive_group()
    for name, text in (
        ("pruned", "the cells the aims name, then others while the budget lasts (default)"),
        ("full", "every combination"),
        ("smoke", "a few seconds: does everything run and report?"),
    ):
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=text)
    p.set_defaults(mode="pruned")
    p.add_argument("--targets", default=",".join(engine.ORDER), help="names, by commas")
    p.add_argument("--only", default="", help="measure only cells whose name matches this regex")
    p.add_argument("--budget", type=float, default=780, help="seconds the pruned run may take")
    p.add_argument("--rounds", type=int, help="rounds per cell")
    p.add_argument("--window", type=float, help="seconds measured per target, cell and round")
    p.add_argument("--output", help="directory of the records and their report (default: build/bench/results/DATE)")
    p.add_argument("--reports", help="directory that a copy of the report goes to (default: build/bench/reports; with --output or --smoke: none)")
    p.add_argument("--programs", default=os.path.join(ROOT, "build/bench/bin"))
    p.add_argument("--gateway", default=os.path.join(ROOT, "build/bin/sluice-gateway"))
    p.add_argument("--gateway-arg", action="append", default=[], help="more for sluice-gateway")
    p.add_argument("--bare-arg", action="append", default=[], help="more for bare-echo")
    p.add_argument("--target-core", type=int, default=0)
    p.add_argument("--client-core", type=int, default=1)
    p.add_argument("--nice", type=int, default=0, help="of targets and client alike")
    realtime = "SCHED_FIFO for targets and client: figures in spite of busy neighbours"
    p.add_argument("--realtime", action="store_true", help=realtime)
    p.add_argument("--wait", default="poll", choices=("poll", "receive", "sleep"))
    return p.parse_args(argv)


def groups_for(args, kinds, setup, rounds):
    if args.mode == "smoke":
        groups = cells.smoke()
    elif args.mode == "full":
        groups = cells.full()
    else:
        groups = cells.aimed() + cells.further()
    if args.only:
        matches = re.compile(args.only).search
        groups = [
            dataclasses.replace(g, digests=kept)
            for g in groups
            if (kept := tuple(c.digests for c in g.cells if matches(c.name)))
        ]

    def cost(group):
        return sum(
            len(range(0, rounds, t.every)) * (setup.window * t.windows + setup.warmup + t.overhead)
            for c in group.cells
            for t in kinds
            if t.measures(c)
        )

    if args.mode != "pruned":
        return _ceph_last(groups), sum(cost(g) for g in groups)
    kept, seconds = cells.prune(groups, len(cells.aimed()), cost, args.budget)
    return _ceph_last(kept), seconds


def _ceph_last(groups):
    """Once it runs it would disturb the others."""
    return sorted(groups, key=lambda g: g.shape.store == "rbd")


def run_all(setup, args, kinds, rounds, notes):
    groups, seconds = groups_for(args, kinds, setup, rounds)
    count = sum(len(g.cells) for g in groups)
    print(f"{count} cells, {rounds} rounds, about {seconds / 60:.1f} minutes", flush=True)
    records = []
    with open(os.path.join(setup.results, "results.jsonl"), "w") as out:

        def sink(record):
            records.append(record)
            out.write(json.dumps(record) + "\n")
            out.flush()

        for i, group in enumerate(groups):
            started = time.monotonic()
            measure.alternate(group.cells, kinds, rounds, sink, notes)
            mine = [r for r in records if cells.from_record(r) in group.cells]
            for cell, found in stats.by_cell(mine, cells.from_record).items():
                text = ", ".join(f"{n} {s['cpu_us']:.2f}" for n, s in found.items())
                spent = time.monotonic() - started
                done = f"[{i + 1}/{len(groups)}]"
                print(f"{done} {cell.name}: {text} µs ({spent:.0f} s)", flush=True)
    return records


def take_over(kinds, count, notes):
    """Milliseconds of takeovers of an image of Ceph, where that was measured."""
    found = []
    for target in kinds:
        if target.name != "rbd" or not target.ceph.started:
            continue
        try:
            found += takeover.measure(target, count)
        except (measure.MeasureError, targets.StartError, ValueError) as e:
            notes.append(f"takeovers: {e}")
    return found


def write_report(setup, records, more, reports):
    """The page, in the directory of the results and in that of the reports. `more` are records of the run itself."""
    with open(os.path.join(setup.results, "results.jsonl"), "a") as out:
        out.writelines(json.dumps(record) + "\n" for record in more)
    page = engine.page(records + more)
    for directory in [setup.results, *([reports] if reports else [])]:
        page.write(directory)
    return page


def assert_whole(setup, kinds, page):
    measured = [c for g in cells.smoke() for c in g.cells]
    expected = [(t.name, c.name) for t in kinds for c in measured if t.measures(c)]
    found = check.problems(setup.results, expected, map(page.file, page.plots()) if style.possible() else ())
    if found:
        sys.exit("run.py: the output is not whole:\n  " + "\n  ".join(found))
    print(f"smoke test: {len(expected)} measurements, all fields present")


def make_setup(args):
    _, window, warmup = MODES[args.mode]
    results = args.output or os.path.join(build.RESULTS, time.strftime("%Y%m%d-%H%M%S"))
    os.makedirs(results, exist_ok=True)
    size = (64 << 20) if args.mode == "smoke" else (1 << 30)
    return Setup(
        root=ROOT,
        results=results,
        programs=args.programs,
        gateway=args.gateway,
        file=os.path.join(f"{DISK}-{os.getpid()}", "file.img"),
        ram_file=f"{SHM}-{os.getpid()}.img",
        file_size=size,
        span=size,
        window=args.window or window,
        warmup=warmup,
        target_core=args.target_core,
        client_core=args.client_core,
        nice=args.nice,
        realtime=args.realtime,
        wait=args.wait,
        bare_args=tuple(args.bare_arg),
        gateway_args=tuple(args.gateway_arg),
    )


def main(argv):
    args = parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # so that everything is cleaned up
    if not {args.target_core, args.client_core} <= os.sched_getaffinity(0):
        sys.exit("run.py: target and client need a core each (--target-core, --client-core)")
    private = os.environ.get("SLUICE_BENCH_PRIVATE_NETWORK") == "1"
    setup = make_setup(args)
    setup.congestion = machine.fix_congestion(private)
    rounds = args.rounds or MODES[args.mode][0]
    remove_stale_files()
    facts = machine.facts(setup, private)
    kinds, missing = targets.available(setup, args.targets.split(","))
    notes = [f"{name} was not measured: {why}" for name, why in missing.items()]
    for note in notes:
        print(note)

    with contextlib.ExitStack() as cleanup:
        cleanup.callback(remove_files, setup)
        make_files(setup)
        for target in kinds:
            cleanup.callback(target.stop)
            target.start()
        measure.touch_once(setup, kinds, notes)
        records = run_all(setup, args, kinds, rounds, notes)
        times = take_over(kinds, 1 if args.mode == "smoke" else takeover.COUNT, notes)
    if not records:
        sys.exit("run.py: nothing was measured")
    more = [{"facts": facts}, *({"note": note} for note in notes), *([{"takeover_ms": times}] if times else [])]
    page = write_report(setup, records, more, args.reports or (None if args.mode == "smoke" or args.output else build.REPORTS))
    print(page.markdown(False) if args.mode != "smoke" else "", end="")
    if args.mode == "smoke":
        assert_whole(setup, kinds, page)
    print(f"written: {os.path.relpath(setup.results, ROOT)}/")
    latest = os.path.join(build.RESULTS, "latest")
    if not args.output:
        with contextlib.suppress(OSError):
            os.unlink(latest)
        with contextlib.suppress(OSError):
            os.symlink(os.path.basename(setup.results), latest)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except targets.StartError as e:
        sys.exit(f"run.py: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
