"""Measurements: the client against one target, for one cell; and all targets by turns."""

import dataclasses
import json
import subprocess

from runner import cells, processes

SLOWEST_READ = 600e6  # bytes per second
FILL = ("--verify",)  # the client writes all of its span before the window


class MeasureError(Exception):
    pass


def command(setup, target, cell, more=()):
    return [
        setup.program("iscsi-load"),
        *target.client_args(cell),
        "--op", cell.op,
        "--pattern", "sequential" if cell.sequential else "random",
        "--size", str(cell.size),
        "--depth", str(cell.depth),
        "--sessions", str(cell.sessions),
        *cell.more_args,
        *more,
        "--span", str(target.span),
        "--warmup", str(setup.warmup),
        "--seconds", str(setup.window * target.windows),
        "--congestion", setup.congestion,
        "--wait", setup.wait,
        "--watch-pid", ",".join(str(pid) for pid in target.pids),
        "--watch-core", str(setup.target_core),
    ]  # fmt: skip


def measure(setup, target, cell, more=()):
    """The client's record. Raises MeasureError if it failed or reports errors."""
    child = processes.spawn(
        command(setup, target, cell, more),
        setup.client_core,
        setup.nice,
        setup.realtime,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, err = child.communicate(timeout=setup.warmup + setup.window * target.windows + 30)
    except subprocess.TimeoutExpired:
        raise MeasureError("the client doesn't end") from None
    finally:
        processes.stop(child, patience=0)
    try:
        record = json.loads(out)
    except ValueError:
        raise MeasureError(err.decode(errors="replace").strip() or "no output") from None
    if record["errors"]:
        raise MeasureError(f"{record['errors']} errors, first: {record['first_error']}")
    return record


def alternate(cells, kinds, rounds, sink, notes):
    """All rounds of cells that belong together; `sink` gets each record, `notes` what failed. The
    order turns by one each round, so that no target always follows the same other."""
    for r in range(rounds):
        turned = kinds[r % len(kinds) :] + kinds[: r % len(kinds)]
        for target in turned:
            if r % target.every != 0:
                continue
            for cell in cells:
                if not target.measures(cell):
                    continue
                try:
                    record = target.measure(cell)
                except MeasureError as e:
                    note = f"{target.name}, {cell.name}: {e}"
                    if note not in notes:
                        notes.append(note)
                        print(f"  ! {note}", flush=True)
                    continue
                record.update(target=target.name, round=r, cell=dataclasses.asdict(cell))
                sink(record)


def touch_once(setup, kinds, notes):
    """First touches of pages belong to no command, and the limit touches its memory when it starts. So every target
    writes its memory once, because memory without data would be one page of zeros, and reads its files once."""
    short = dataclasses.replace(setup, warmup=0, window=0.05)
    whole = dataclasses.replace(setup, warmup=0, window=setup.file_size / SLOWEST_READ)
    for store, once, more in (("memory", short, FILL), ("file", whole, ()), ("volume", whole, ())):
        cell = cells.Shape(store, "read", 131072, 32, 1, sequential=True).cell(False)
        for target in kinds:
            if not target.measures(cell):
                continue
            try:
                measure(once, target, cell, more)
            except MeasureError as e:
                notes.append(f"{target.name} didn't touch its {cells.STORE_NAMES[store]} before: {e}")
