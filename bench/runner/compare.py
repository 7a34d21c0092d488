"""Two runs beside each other: what costs more or less than before, by more than noise.

A target's cost is its CPU per command as a multiple of the limit's of the same cell and round. The
limit runs on the same machine at the same time, so that a faster machine is no faster target."""

import dataclasses
import json
import os

from report import engine, pages
from runner import cells, stats

# A change of less than that is none, however little the rounds spread.
LEAST = 0.03
# Fewer rounds than that say nothing about noise.
ROUNDS = 3

# Keys of the records that say something about the run.
NO_MEASUREMENTS = {"facts", "note", "takeover_ms"}

SLOWER, FASTER, SAME, UNCLEAR = "slower", "faster", "same", "too few rounds"


class InputError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Change:
    cell: object
    target: str
    old: stats.Figure
    new: stats.Figure
    verdict: str

    @property
    def ratio(self):
        return self.new.median / self.old.median


def read(path):
    """The records of a run, by its directory or its file."""
    name = os.path.join(path, "results.jsonl") if os.path.isdir(path) else path
    try:
        with open(name) as f:
            lines = [line for line in f if line.strip()]
    except OSError as e:
        wanted = "name a run's directory, or its results.jsonl"
        raise InputError(f"{name}: {e.strerror}: {wanted}") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            if isinstance(record, dict) and record.keys() & NO_MEASUREMENTS:
                continue
            cells.from_record(record), stats.METRICS["cpu_us"](record)
        except (ValueError, KeyError, TypeError) as e:
            raise InputError(f"{name}:{number}: no measurement of bench/run.sh ({e!r})") from None
        records.append(record)
    if not records:
        raise InputError(f"{name}: it has no measurements")
    return records


def costs(records):
    """{(cell, target): the rounds' costs}; the limit itself has none."""
    found = {}
    for cell, targets in stats.by_cell(records, cells.from_record).items():
        reference = engine.REFERENCES.get(cell.store, "bare")
        for name, summary in targets.items():
            ratios = stats.paired_ratios(summary, targets.get(reference), "cpu_us")
            if name != reference and ratios:
                found[cell, name] = ratios
    return found


def judge(old, new):
    """Beyond noise is what even the best round of one run and the worst of the other agree on."""
    if min(len(old), len(new)) < ROUNDS:
        return UNCLEAR
    change = stats.figure(new).median / stats.figure(old).median - 1
    if change > LEAST and min(new) > max(old):
        return SLOWER
    if change < -LEAST and max(new) < min(old):
        return FASTER
    return SAME


def compare(old_records, new_records):
    """Changes of what both runs measured, in the new one's order; how many were in one run only."""
    old, new = costs(old_records), costs(new_records)
    both = [key for key in new if key in old]
    changes = [
        Change(*key, stats.figure(old[key]), stats.figure(new[key]), judge(old[key], new[key]))
        for key in both
    ]
    return changes, len(old) + len(new) - 2 * len(both)


def _row(change):
    def shown(figure):
        return f"{figure.median:.2f}× ±{figure.spread:.0%}"

    percent = f"{change.ratio - 1:+.0%}"
    return [change.cell.name, change.target, shown(change.old), shown(change.new), percent]


def markdown(changes, alone, everything):
    """What has changed; with `everything` also what has not."""
    parts = []
    for verdict in (SLOWER, FASTER, UNCLEAR, SAME):
        mine = [c for c in changes if c.verdict == verdict]
        if verdict == SAME and not everything:
            parts.append(f"{len(mine)} others are the same, noise aside (--all shows them).")
            continue
        mine.sort(key=lambda c: -abs(c.ratio - 1))
        if mine:
            head = ["cell", "target", "old", "new", "change"]
            parts.append(f"## {len(mine)} {verdict}\n\n{pages.table(head, map(_row, mine))}")
    if alone:
        parts.append(f"{alone} were measured in one run only, or there without the limit beside them.")
    return "\n\n".join(parts) + "\n"
