"""The report of bench/isolation: the latency of one LUN while the device of another one stalls. Each record is one repetition of one
target."""

import statistics

from report import pages, style
from report.pages import Page, Plot, table

NAME = "isolation"
SUBJECTS = ("sluice", "tgt")
PHASES = {"calm": "without a stall", "stalled": "during a stall"}

HEAD = """One host uses two LUNs through one session: one file on a device that stalls, and one on a healthy device (the neighbour). The
device is a FUSE file system that holds all requests for the time of a stall. The host reads (70 %) and writes 4 KiB at random on both
LUNs, with a fixed number of commands in flight on each. On the LUN that stalls it pauses after each command, so that this load takes
little from the neighbour while the device does not stall; all its commands wait soon after a stall begins. Both targets have a write
cache, and run on one CPU; the host has another one. The page cache has the neighbour's file, and little of the other one.

Only commands on the neighbour are measured. A command counts for the phase in which it begins; those of the first 0.5 s after a stall
count for none. The ratio is p99 during stalls over p99 without a stall, both of the same repetition. 1 is perfect isolation. The
targets alternate, and so does their order. FUSE runs in the host's process, so its work is in no target's CPU time."""


def spread(values, digits=3):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def by_subject(records):
    found = {}
    for r in records:
        if "isolationSubject" in r:
            found.setdefault(r["isolationSubject"], []).append(r)
    return {name: found[name] for name in sorted(found, key=lambda n: SUBJECTS.index(n) if n in SUBJECTS else len(SUBJECTS))}


def figures(found):
    rows = []
    for name, mine in found.items():
        for phase, words in PHASES.items():
            columns = [spread([r[phase][key] * 1000 for r in mine]) for key in ("p50Seconds", "p99Seconds", "maxSeconds")]
            rate = statistics.median(r[phase]["count"] for r in mine)
            rows.append([name, words, *columns, f"{rate:,.0f}"])
    return table(["target", "the device", "p50 ms", "p99 ms", "longest ms", "commands"], rows)


def ratios(found):
    rows = []
    for name, mine in found.items():
        held = max(r["held"] for r in mine)
        rows.append([name, str(len(mine)), spread([r["p99Ratio"] for r in mine], 2), str(held), str(sum(r["errors"] for r in mine))])
    return table(["target", "repetitions", "p99 during stalls ÷ p99 without", "most requests that the device held", "errors"], rows)


def typical(mine):
    """The repetition with the median ratio, of an even number the lower one."""
    return sorted(mine, key=lambda r: r["p99Ratio"])[(len(mine) - 1) // 2]


def panel(name, mine):
    r = typical(mine)
    points = tuple((b["from"], style.Value(*[b["p99Seconds"] * 1000] * 3)) for b in r["bins"])
    title = f"{name}: repetition {r['repetition']} of {len(mine)}, ratio {r['p99Ratio']:.2f}"
    return style.Lines(title, style.Quantity("time", "s"), style.Quantity("p99 of commands begun in 0.1 s", "ms"), {name: points},
                       shades=tuple(style.Shade(*stall, "stall") for stall in r["stalls"]), points=False)  # fmt: skip


def figure(found):
    panels = [panel(name, mine) for name, mine in found.items()]
    return style.draw("Latency of the healthy LUN while the device of the other one stalls (grey); each target has its own scale", panels,
                      columns=1, shared=False)  # fmt: skip


def page(records, name=NAME):
    facts = {}
    for r in records:
        facts |= r.get("facts", {})
    found = by_subject(records)
    machine = pages.facts_table(facts)
    return Page(name, (
        "# Isolation: one device stalls, and what its neighbour notices",
        HEAD,
        Plot("", "Lines of the neighbour's p99 latency over time for each target, with the stalls of the other LUN's device shaded",
             lambda: figure(found)),
        "## Ratio\n\nMedians of the repetitions; in brackets the lowest and the highest.\n\n" + ratios(found),
        "## Latency of the neighbour\n\n" + figures(found),
        "## Run\n\n" + machine if machine else "",
    ))  # fmt: skip
