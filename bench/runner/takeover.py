"""How long a gateway needs to take an image over from one that was killed, by its own log."""

import datetime
import statistics

from runner import aims

COUNT = 20
BOUND_MS = 200


def _moment(line):
    return datetime.datetime.fromisoformat(line.split(" ", 1)[0].rstrip("Z"))


def part_of_rbd(log):
    """Milliseconds from being connected to Ceph to serving: fence, lock, latest map, size."""
    connected = None
    for line in log.splitlines():
        if " connected to Ceph " in line:
            connected = _moment(line)
        elif " listening " in line and connected:
            return (_moment(line) - connected).total_seconds() * 1000
    raise ValueError("the log doesn't tell when it served")


def measure(target, count=COUNT):
    """Milliseconds of each; `target` is the gateway over an image."""
    found = []
    target.need_ceph()
    for i in range(count + 1):
        target.serve()
        with open(target.log_path, errors="replace") as log:
            text = log.read()
        target.process.kill()
        target.process.wait()
        if i > 0:  # the first one takes over from no other process
            found.append(part_of_rbd(text))
    return found


def verdict(found):
    median = statistics.median(found)
    text = f"{len(found)} takeovers, {min(found):.0f} to {max(found):.0f} ms, median"
    return aims.Verdict(
        "rbd's part of a takeover", text, BOUND_MS, median, median / BOUND_MS, 1, unit="ms"
    )
