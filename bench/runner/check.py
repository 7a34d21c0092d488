"""Whether a run's output is whole. Says nothing about how fast anything was."""

import json
import os

RECORD_FIELDS = {
    "target", "round", "cell", "iops", "mb_per_s", "latency_us", "commands", "seconds",
    "client_busy", "client_cpu", "client_wait", "commands_per_receive", "target_cpu_us",
    "target_cpu", "target_cpu_stat", "target_wait", "target_slices", "core_busy", "core_softirq",
    "core_steal", "congestion", "errors",
}  # fmt: skip
LATENCY_FIELDS = {"mean", "p50", "p99", "p999", "max"}
FACTS = {
    "date", "kernel", "cpu", "cores", "memory_gib", "congestion", "private_network", "commit",
}  # fmt: skip
SECTIONS = ("## Aims", "## Target CPU", "## Throughput and latency", "## Machine")
FILES = ("results.jsonl", "engine.md")


def problems(directory, expected, plots=()):
    """What is missing, as sentences. `expected`: (target, cell name) pairs that must be there; `plots`: names of files."""
    found = []
    for name in [*FILES, *plots]:
        path = os.path.join(directory, name)
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            found.append(f"{name} is missing or empty")
    if found:
        return found
    with open(os.path.join(directory, "results.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    records = [line for line in lines if "target" in line]
    for record in records:
        missing = RECORD_FIELDS - record.keys()
        missing |= LATENCY_FIELDS - record.get("latency_us", {}).keys()
        if missing:
            found.append(f"a record of {record.get('target')} lacks {sorted(missing)}")
        elif record["commands"] <= 0 or record["target_cpu_us"] <= 0:
            found.append(f"a record of {record['target']} measured nothing")
        elif not 0 <= record["client_busy"] <= 1:
            found.append(f"a record of {record['target']} has an impossible client_busy")
    lacking = FACTS - {key for line in lines for key in line.get("facts", {})}
    if lacking:
        found.append(f"the facts lack {sorted(lacking)}")
    with open(os.path.join(directory, "engine.md")) as f:
        text = f.read()
    found += [f"engine.md lacks {s!r}" for s in SECTIONS if s not in text]
    found += [f"engine.md lacks {cell}" for _, cell in expected if f"| {cell} |" not in text]
    measured = {(r.get("target"), tuple(sorted(r.get("cell", {}).items()))) for r in records}
    found += [f"{t} has no record of {c}" for t, c in expected if not _has(measured, t, c)]
    return found


def _has(measured, target, cell_name):
    from runner import cells

    return any(t == target and cells.Cell(**dict(c)).name == cell_name for t, c in measured)
