"""CPU time of processes and of a core, by two samples of /proc."""

import os
import time


def _threads(pids):
    """{thread: (ns on a CPU, ns waiting for one, times put on one)} of processes."""
    found = {}
    for pid in pids:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                    found[thread] = tuple(int(word) for word in f.read().split())
        except FileNotFoundError:
            continue
    return found


def _core(core):
    """Busy, in soft interrupts, stolen: seconds so far."""
    with open("/proc/stat") as f:
        words = next(line for line in f if line.startswith(f"cpu{core} ")).split()[1:]
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, soft, steal = (int(word) / ticks for word in words[:8])
    return user + nice + system + irq + soft, soft, steal


class Sample:
    def __init__(self, pids, core):
        self.at = time.monotonic()
        self.threads = _threads(pids)
        self.core = _core(core)

    def since(self, then):
        """As shares of the time between."""
        passed = self.at - then.at
        grown = [
            [now - before for now, before in zip(values, then.threads.get(thread, (0, 0, 0)))]
            for thread, values in self.threads.items()
        ]
        run, wait, slices = (sum(column) for column in zip(*grown))
        cores = [(now - before) / passed for now, before in zip(self.core, then.core)]
        return run / 1e9 / passed, wait / 1e9 / passed, slices, *cores
