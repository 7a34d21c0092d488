#!/usr/bin/env python3
"""The report generator: build.py RECORDS... [--out DIR] [--name NAME]

RECORDS are JSON lines that a benchmark wrote. What is in them tells which benchmark it was. Each page is DIR/NAME.md with its plots
beside it as SVG; an experiment has its own page, experiment-FOLDER.md."""

import argparse
import json
import os
import sys
import types

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
sys.path.insert(0, BENCH)

from report import engine, failover, isolation, lines, placement, scale, sections  # noqa: E402
from runner import machine  # noqa: E402

RESULTS = os.path.join(ROOT, "build/bench/results")
REPORTS = os.path.join(ROOT, "build/bench/reports")


def read(path):
    with open(path) as f:
        records = []
        for number, text in enumerate(f, 1):
            if text.strip():
                try:
                    records.append(json.loads(text))
                except ValueError as e:
                    raise lines.LineError(f"{path}:{number}: no JSON: {e}") from None
    return records


def experiment_pages(paths):
    machine, experiments = lines.by_experiment([line for p in paths for line in lines.read(p)])
    return [sections.page(e, os.path.join(BENCH, "experiments", e.name), machine) for e in experiments.values()]


def pages_of(paths, name=None):
    """The pages of these records."""
    records = [r for p in paths for r in read(p)]
    keys = {key for r in records if isinstance(r, dict) for key in r}
    if "experiment" in keys:
        return experiment_pages(paths)
    for key, module in (("target", engine), ("stallsSeconds", failover), ("what", scale), ("isolationSubject", isolation), ("step", placement)):
        if key in keys:
            return [module.page(records, **({"name": name} if name else {}))]
    raise lines.LineError(f"{', '.join(paths)}: nothing was measured")


def machine_facts():
    """Of the machine and the revision."""
    setup = types.SimpleNamespace(root=ROOT, congestion="", target_core="", client_core="")
    return {k: v for k, v in machine.facts(setup, "").items() if v != ""}


def build(paths, out, name=None):
    """Writes the pages of these records; the paths of all files."""
    return [path for page in pages_of(paths, name) for path in page.write(out)]


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="*", metavar="RECORDS")
    p.add_argument("--facts", action="store_true", help="print the facts of this machine as a record, and do nothing")
    p.add_argument("--out", default=REPORTS, metavar="DIR", help="directory of the report (default: build/bench/reports)")
    p.add_argument("--name", help="of the page (default: that of the benchmark)")
    p.add_argument("--print", action="store_true", help="print the Markdown, too")
    args = p.parse_args(argv)
    if args.facts:
        print(json.dumps({"facts": machine_facts()}))
        return
    if not args.files:
        p.error("name the files of the records")
    try:
        written = build(args.files, args.out, args.name)
    except (lines.LineError, OSError) as e:
        sys.exit(f"build.py: {e}")
    for path in written:
        if path.endswith(".md"):
            if args.print:
                with open(path) as f:
                    print(f.read(), end="")
            print(f"written: {os.path.relpath(path)}")


if __name__ == "__main__":
    main(sys.argv[1:])
