"""Sizes × read and write × digests over a null LUN."""

import math
import statistics

from experiments.frame import load, subjects

STORE = subjects.Store("null", "null")
SIZES = (4096, 8192, 16384, 32768, 65536)
SHORT_SIZES = (4096, 8192, 65536)  # the smallest, and two that the study has with digests
DIGESTS = {"none": (False, False), "header": (True, False), "data": (False, True),
           "both": (True, True)}  # fmt: skip
DEPTH = 16
CPU = "target_cpu_s_per_command"
BOUND = 1.1
MOST_SPREAD = 0.2  # of what digests add, from round to round, for a verdict


class Tgt(subjects.Tgt):
    """Its digests cost what both of them cost; one alone adds nothing to know in a short run."""

    every = 2
    brief = False

    def measures(self, one):
        return super().measures(one) and (not self.brief or one.digests in ("none", "both"))


def cells(sizes):
    """Groups that are measured in the same rounds, so that digests compare with none."""
    return [
        [load.Load("null", op, size, DEPTH, header_digest=header, data_digest=data)
         for header, data in DIGESTS.values()]
        for size in sizes
        for op in ("read", "write")
    ]  # fmt: skip


def parameters(one):
    return {"op": one.op, "size": one.size, "digests": one.digests}


def relate(options, group):
    """What each kind of digests makes of the same round's figures without: lines of their own."""
    names = options.measured.subjects()
    for one in group:
        for name in names:
            ours = options.series(name, parameters(one))
            plain = options.series(name, parameters(one) | {"digests": "none"})
            if one.digests == "none" or not ours or not plain:
                continue
            for r in ours.by_round.keys() & plain.by_round.keys():
                with_them, without = ours.by_round[r], plain.by_round[r]
                options.figures(name, parameters(one), r, {
                    "cpu_ratio_to_none": with_them[CPU] / without[CPU],
                    "iops_ratio_to_none": with_them["iops"] / without["iops"],
                })  # fmt: skip


def added(options, name, kind, groups):
    """What digests of a kind add per command, by cell and round; None where a cell is missing."""
    found = []
    for group in groups:
        plain, ours = (
            next(options.series(name, parameters(c)) for c in group if c.digests == d)
            for d in ("none", kind)
        )
        rounds = plain.by_round.keys() & ours.by_round.keys() if plain and ours else ()
        if not rounds:
            return None
        found.append({r: ours.by_round[r][CPU] - plain.by_round[r][CPU] for r in rounds})
    return found


def total(cells):
    """A single cell's difference drowns in its noise: the sum over all of them, of each the median
    of its rounds; and how far the rounds' own sums lie apart, half their range by the sum. None
    where less than two rounds can tell, or nothing was added."""
    value = sum(statistics.median(c.values()) for c in cells)
    rounds = set.intersection(*(set(c) for c in cells))
    if len(rounds) < 2 or value <= 0:
        return None
    sums = [sum(c[r] for c in cells) for r in rounds]
    return value, (max(sums) - min(sums)) / 2 / value


def judge(options, groups):
    for kind in ("header", "data", "both"):
        found = [added(options, name, kind, groups) for name in ("sluice", "bare")]
        if None in found:
            continue
        totals = [total(cells) for cells in found]
        spread = max(t[1] for t in totals) if all(totals) else math.inf
        if spread > MOST_SPREAD:
            how_far = f"rounds differ by ±{spread:.0%}" if all(totals) else "it isn't above zero"
            why = f"the aim, digests {kind}: what they add is lost in noise ({how_far})"
            options.emit({"skipped": why})
            continue
        (ours, _), (limits, _) = totals
        text = f"CPU that digests ({kind}) add, sum over sizes and directions, beside the limit's"
        options.aim(f"{text} (rounds ±{spread:.0%})", ours / limits, f"<= {BOUND}")


def run(options):
    setup = options.setup(window=options.choose(0.1, 0.3, 0.8))
    groups = cells(options.choose((8192,), SHORT_SIZES, SIZES))
    tgt = Tgt(setup, [STORE])
    tgt.brief = options.mode != "full"
    kinds = [subjects.Bare(setup, [STORE]), subjects.Sluice(setup, [STORE]), tgt]
    kinds = [k for k in kinds if options.start(k)]
    for group in groups:
        options.alternate(group, kinds, parameters)
        relate(options, group)
        for name in options.measured.subjects():
            shown = [options.series(name, parameters(c)) for c in group]
            text = ", ".join(
                f"{c.digests} {s.figure(CPU).median * 1e6:.2f}" for c, s in zip(group, shown) if s
            )
            print(f"  {group[0].op} {group[0].size}: {name}: {text} µs", flush=True)
    judge(options, groups)
