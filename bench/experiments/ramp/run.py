"""Clients × LUNs × threads, stepped up until more of them stops helping."""

import statistics

from experiments.frame import counters, load, subjects

LARGE, SMALL = 131072, 512
FIGURE = {LARGE: "bytes_per_second", SMALL: "iops"}
CPU = "target_cpu_s_per_command"
GAIN = 1.05  # less than that is no help
MOST_IN_FLIGHT = 256  # per session: iscsi-load's and the bare echo's
STUDY = (8, 1, 2)  # what the user-space target of the study was given
LADDERS = {  # by mode; threads first, they are cheapest
    "smoke": {"threads": (1, 2), "clients": (1, 2), "luns": (1, 2)},
    "short": {"threads": (1, 4, 16, 32), "clients": (1, 2, 4, 8), "luns": (1, 2, 5)},
    "full": {"threads": (1, 2, 5, 10, 20, 40, 80), "clients": (1, 2, 4, 8, 16, 32, 47),
             "luns": (1, 2, 5)},
}  # fmt: skip


class Counted(subjects.Sluice):
    """Sluice, and what its own counters and the interface's say of a measurement's bytes."""

    def measure(self, one):
        before, outside = counters.gateway(self.metrics_port), counters.interface()
        record = super().measure(one)
        outside = counters.interface() - outside
        inside = counters.grown(counters.gateway(self.metrics_port), before)
        payload = inside["payload_read"] + inside["payload_write"]
        wire = inside["wire_send"] + inside["wire_receive"]
        if not payload:  # the machine had no time for us: there is nothing to relate
            return record
        record["bytes"] = {
            "wire_bytes_per_second": record["mb_per_s"] * 1e6 * wire / payload,
            "payload_of_wire_ratio": payload / wire,
            "interface_to_wire_ratio": outside / wire,
        }
        return record


def parameters(one):
    return {"op": one.op, "size": one.size, "clients": one.sessions, "luns": one.luns,
            "threads": one.depth // one.luns}  # fmt: skip


def cell(op, size, place):
    clients, luns, threads = place
    return load.Load("null", op, size, threads * luns, sessions=clients, luns=luns)


class Climb:
    """One operation and size. All subjects are measured at each step, until none gains."""

    def __init__(self, options, kinds, op, size):
        self.options, self.kinds, self.op, self.size = options, kinds, op, size
        self.place = {"clients": 1, "luns": 1, "threads": 1}

    def at(self, **changes):
        p = self.place | changes
        return cell(self.op, self.size, (p["clients"], p["luns"], p["threads"]))

    def value(self, name, one):
        series = self.options.series(name, parameters(one))
        found = series.figure(FIGURE[self.size]) if series else None
        return found.median if found else 0.0

    def measure(self, one):
        """All subjects' figure at a step."""
        if not self.value("sluice", one):
            self.options.alternate(
                [one], self.kinds, parameters, extra=lambda _, record: record.get("bytes", {})
            )
        found = {kind.name: self.value(kind.name, one) for kind in self.kinds}
        text = ", ".join(f"{name} {v:,.0f}" for name, v in found.items())
        print(f"  {one.name}: {text}", flush=True)
        return found

    def climb(self):
        best = self.measure(self.at())
        for what, steps in LADDERS[self.options.mode].items():
            for count in steps[1:]:
                one = self.at(**{what: count})
                if one.depth > MOST_IN_FLIGHT:
                    break
                found = self.measure(one)
                if found["sluice"] > best["sluice"]:
                    self.place[what] = count
                helped = any(found[n] > GAIN * best[n] for n in found)
                best = {n: max(found[n], best[n]) for n in found}
                if not helped:
                    break

    def tell_best(self):
        """Each subject's own best step, as a cell of its own, and what one core serves there."""
        for kind in self.kinds:
            steps = [
                (s.figure(FIGURE[self.size]).median, s)
                for c in self.options.measured.cells.values()
                if (s := c.get(kind.name)) and "threads" in s.parameters
                and (s.parameters["op"], s.parameters["size"]) == (self.op, self.size)
            ]  # fmt: skip
            if not steps:
                continue
            _, series = max(steps, key=lambda step: step[0])
            place = {k: series.parameters[k] for k in ("clients", "luns", "threads")}
            for r in sorted(series.quiet()):
                figures = series.by_round[r]
                served = 1 / figures[CPU]
                self.options.figures(
                    kind.name, {"op": self.op, "size": self.size, "stage": "best"}, r,
                    figures | place | {"one_core_iops": served,
                                       "one_core_bytes_per_second": served * self.size},
                )  # fmt: skip


def judge(options):
    """The gateway's own count of bytes against the interface's, which also counts TCP's headers."""
    ratios = {size: [] for size in FIGURE}
    for c in options.measured.cells.values():
        if "sluice" in c and "size" in c["sluice"].parameters:
            for figures in c["sluice"].by_round.values():
                ratio = figures.get("interface_to_wire_ratio")
                ratios[c["sluice"].parameters["size"]] += [ratio] if ratio else []
    for size, found in ratios.items():
        if not found:
            continue
        text = f"bytes of the interface, as a multiple of the gateway's count, {size} B commands"
        options.aim(f"{text}, least", min(found), ">= 1.0")
        if size == LARGE:
            options.aim(f"{text}, median", statistics.median(found), "<= 1.05")


def run(options):
    setup = options.setup(window=options.choose(0.1, 0.2, 0.8))
    stores = [subjects.Store(f"null{i}" if i else "null", "null") for i in range(5)]
    kinds = [subjects.Bare(setup, stores), Counted(setup, stores), subjects.Tgt(setup, stores)]
    kinds = [k for k in kinds if options.start(k)]
    wanted = [("read", LARGE), ("read", SMALL)]
    wanted += options.choose([], [], [("write", LARGE), ("write", SMALL)])
    for op, size in wanted:
        one = Climb(options, kinds, op, size)
        if (op, size) == ("read", LARGE):
            one.measure(cell(op, size, STUDY))
        one.climb()
        one.tell_best()
    judge(options)
