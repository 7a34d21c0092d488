"""A study's figures beside ours: by the parameters that both name."""

import json
import os

from report import lines

NEEDED = {"study", "subject", "parameters", "figures"}


def load(folder):
    """The entries of a study.json; none if there is no such file."""
    path = os.path.join(folder, "study.json")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        entries = json.load(f)
    for number, entry in enumerate(entries):
        lacking = NEEDED - entry.keys()
        if lacking:
            raise lines.LineError(f"{path}: entry {number} lacks {', '.join(sorted(lacking))}")
    return entries


def matching(entry, cells):
    """Our cell that a study's entry stands beside: no parameter of both differs, and as many as
    possible are shared. None if none fits."""
    best, most = None, 0
    for cell in cells.values():
        ours = next(iter(cell.values())).parameters
        shared = entry["parameters"].keys() & ours.keys()
        if any(entry["parameters"][name] != ours[name] for name in shared):
            continue
        if len(shared) > most:
            best, most = cell, len(shared)
    return best
