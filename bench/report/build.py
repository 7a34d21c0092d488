#!/usr/bin/env python3
"""Makes the report of experiments: build.py FILE... --out DIR. FILEs are their JSON lines."""

import argparse
import os
import shutil
import sys
import time

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, BENCH)

from report import lines, plot, sections  # noqa: E402
from runner.report import table  # noqa: E402

REPORT = "report.md"


def overview(experiments):
    rows = [
        [e.name, str(len(e.cells)), ", ".join(sections.ordered(e.subjects())) or sections.DASH,
         f"{sum(a['kept'] for a in e.aims)} of {len(e.aims)}" if e.aims else sections.DASH]
        for e in experiments.values()
    ]  # fmt: skip
    return table(["experiment", "cells", "subjects", "aims kept"], rows)


def noise(experiments):
    """A warning where most rounds were the neighbours' as well."""
    every = [s for e in experiments.values() for cell in e.cells.values() for s in cell.values()]
    rounds = sum(len(s.by_round) for s in every)
    noisy = rounds - sum(len(s.calm()) for s in every)
    if noisy * 2 <= rounds:
        return ""
    return (
        f"**The machine was busy: {noisy} of {rounds} measurements waited for their cores more than"
        " 3 % of the time.** Their IOPS, MB/s and latencies say little, their CPU per command and its"
        " ratios are what is left, with a spread."
    )


def markdown(machine, experiments, pictures):
    """The whole report; `pictures`: {experiment: file name of its plot}."""
    facts = [[k.replace("_", " "), str(v)] for k, v in machine.items()]
    parts = [
        "# What published studies measured, measured on Sluice",
        "All subjects of an experiment alternate in one run. Figures to quote are target CPU per"
        " command and ratios; IOPS and MB/s are this machine's and its neighbours' as well.",
        noise(experiments),
        overview(experiments),
        *(
            sections.section(e, os.path.join(BENCH, "experiments", e.name), pictures.get(e.name))
            for e in experiments.values()
        ),
        "## Machine\n\n" + table(["fact", "value"], facts) if facts else "",
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def build(paths, out):
    """Writes OUT/report.md and its plots; the report's path."""
    machine, experiments = lines.by_experiment([line for p in paths for line in lines.read(p)])
    if not experiments:
        raise lines.LineError(f"{', '.join(paths)}: nothing was measured")
    os.makedirs(out, exist_ok=True)
    pictures = {}
    for e in experiments.values():
        folder = os.path.join(BENCH, "experiments", e.name)
        drawn = plot.draw(e, sections.plot_settings(folder), out)
        if drawn:
            pictures[e.name] = drawn
    path = os.path.join(out, REPORT)
    with open(path, "w") as f:
        f.write(markdown(machine, experiments, pictures))
    return path


def keep(out, directory):
    """A copy of report, plots and lines under names that last; the report's path."""
    base = time.strftime("%Y-%m-%d-experiments", time.gmtime())
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(out, REPORT)) as f:
        text = f.read()
    for name in sorted(os.listdir(out)):
        if name.endswith(".svg"):
            shutil.copyfile(os.path.join(out, name), os.path.join(directory, f"{base}-{name}"))
            text = text.replace(f"]({name})", f"]({base}-{name})")
        elif name.endswith(".jsonl"):
            shutil.copyfile(os.path.join(out, name), os.path.join(directory, f"{base}.jsonl"))
    path = os.path.join(directory, f"{base}.md")
    with open(path, "w") as f:
        f.write(text)
    return path


def main(argv):
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("files", nargs="+", metavar="FILE")
    p.add_argument("--out", required=True, metavar="DIR")
    args = p.parse_args(argv)
    try:
        print(build(args.files, args.out))
    except (lines.LineError, OSError) as e:
        sys.exit(f"build.py: {e}")


if __name__ == "__main__":
    main(sys.argv[1:])
