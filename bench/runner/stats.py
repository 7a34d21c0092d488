"""From single measurements to one figure per cell and target."""

import dataclasses
import statistics

# Shares of the window in which target or client could have run but did not, or the hypervisor held
# the core: above this the measurement says more about the neighbours than about the target.
QUIET = 0.03

METRICS = {
    "cpu_us": lambda r: r["target_cpu_us"],
    "iops": lambda r: r["iops"],
    "mb_per_s": lambda r: r["mb_per_s"],
    "p50_us": lambda r: r["latency_us"]["p50"],
    "p99_us": lambda r: r["latency_us"]["p99"],
    "p999_us": lambda r: r["latency_us"]["p999"],
    "client_busy": lambda r: r["client_busy"],
    "target_cpu": lambda r: r["target_cpu"],
    "batch": lambda r: r["commands_per_receive"],
}


@dataclasses.dataclass(frozen=True)
class Figure:
    median: float
    low: float
    high: float

    @property
    def spread(self):
        """Half the range, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


@dataclasses.dataclass(frozen=True)
class Summary:
    rounds: int
    quiet: int  # of these so many were quiet; none of the others counts if at least two are
    figures: dict
    by_round: dict  # {round: {metric: value}}, all rounds
    quiet_rounds: frozenset

    def __getitem__(self, metric):
        return self.figures[metric].median


def noise(record):
    """The share of the window that others took from target and client. What a target's own threads
    wait for each other on their one core is none of it."""
    waited = record["target_wait"]
    if "core_busy" in record:
        waited = min(waited, max(0.0, record["core_busy"] - record["target_cpu"]))
    return waited + record["client_wait"] + record.get("core_steal", 0.0)


def figure(values):
    return Figure(statistics.median(values), min(values), max(values))


def summarize(records):
    quiet = [r for r in records if noise(r) <= QUIET]
    used = quiet if len(quiet) >= 2 else records
    return Summary(
        rounds=len(records),
        quiet=len(quiet),
        figures={name: figure([get(r) for r in used]) for name, get in METRICS.items()},
        by_round={r["round"]: {name: get(r) for name, get in METRICS.items()} for r in records},
        quiet_rounds=frozenset(r["round"] for r in quiet),
    )


def _paired(ours, reference, metric):
    """(ours, reference) of the rounds both took part in; of the quiet ones if at least two are.
    The machine's speed drifts (neighbours, where the hypervisor puts the cores), and what the
    targets of one round share cancels."""
    common = ours.by_round.keys() & reference.by_round.keys()
    quiet = common & ours.quiet_rounds & reference.quiet_rounds
    used = quiet if len(quiet) >= 2 else common
    return [(ours.by_round[r][metric], reference.by_round[r][metric]) for r in sorted(used)]


def paired_ratios(ours, reference, metric):
    """The rounds' own ratios."""
    if ours is None or reference is None:
        return []
    return [a / b for a, b in _paired(ours, reference, metric) if b]


def paired_ratio(ours, reference, metric):
    """The median of the rounds' own ratios; None if there is nothing to compare."""
    ratios = paired_ratios(ours, reference, metric)
    return statistics.median(ratios) if ratios else None


def paired_difference(ours, reference, metric):
    """The median of the rounds' own differences."""
    pairs = _paired(ours, reference, metric)
    return statistics.median([a - b for a, b in pairs]) if pairs else 0.0


def by_cell(records, cell_of):
    """{cell: {target: Summary}} in order of first appearance."""
    grouped = {}
    for record in records:
        targets = grouped.setdefault(cell_of(record), {})
        targets.setdefault(record["target"], []).append(record)
    return {
        cell: {name: summarize(rs) for name, rs in targets.items()}
        for cell, targets in grouped.items()
    }
