"""What the engine is held to, each a ratio against the limit (or tgt) measured in the same run."""

import dataclasses

from runner import stats


@dataclasses.dataclass(frozen=True)
class Verdict:
    aim: str
    cell: str
    reference: float
    ours: float
    ratio: float
    bound: float
    at_most: bool = True
    unit: str = "µs CPU"

    @property
    def met(self):
        return self.ratio <= self.bound if self.at_most else self.ratio >= self.bound


def cpu_bound(cell):
    """The most CPU per command a cell may cost, as a multiple of bare; None without an aim."""
    if cell.digests or cell.sessions != 1 or cell.depth != 32 or cell.store not in ("null", "memory"):
        return None
    if cell.size == 4096:
        return 1.25 if cell.op == "read" else 1.2
    return {512: 1.5, 131072: 1.1}.get(cell.size)


def latency_bound(cell):
    """The same for p50 with one command in flight."""
    one = cell.depth == 1 and cell.sessions == 1 and not cell.digests
    return 1.1 if one and cell.size == 4096 else None


def forwarded_bound(cell):
    """The most CPU per command of forwarder and owner together, as a multiple of the direct way."""
    if cell.store not in ("volume", "disk") or cell.depth != 32 or cell.sessions != 1 or cell.digests:
        return None
    return {4096: 2.5, 131072: 2.2}.get(cell.size)


TGT_TIMES = 5.0
SESSIONS_BOUND = 1.05  # of one session's multiple of bare: no worse than one, within the noise of the ratio
DIGEST_BOUND = 1.1
IMAGE_BOUND = 0.9  # of librbd's IOPS and MB/s


def judge(summaries):
    """All verdicts that the measured cells allow, given {cell: {target: Summary}}."""
    verdicts = []
    for cell, targets in summaries.items():
        verdicts += judge_forwarded(cell, targets)
        verdicts += judge_image(cell, targets)
        verdicts += judge_sessions(cell, summaries)
        bare, ours, tgt = (targets.get(name) for name in ("bare", "sluice", "tgt"))
        if not ours:
            continue
        for bound, metric, text, unit in (
            (cpu_bound(cell), "cpu_us", "CPU per command", "µs CPU"),
            (latency_bound(cell), "p50_us", "QD1 p50", "µs"),
        ):
            times = stats.paired_ratio(ours, bare, metric)
            if bound and times is not None:
                figures = (bare[metric], ours[metric], times, bound)
                verdicts.append(Verdict(text, cell.name, *figures, unit=unit))
        at_4k = cell.size == 4096 and cell.depth == 32 and not cell.digests
        times = stats.paired_ratio(tgt, ours, "cpu_us")
        if at_4k and times is not None:
            figures = (tgt["cpu_us"], ours["cpu_us"], times, TGT_TIMES)
            verdicts.append(
                Verdict("work per core against tgt", cell.name, *figures, at_most=False)
            )
    digests = judge_digests(summaries)
    return verdicts + ([digests] if digests else [])


def judge_forwarded(cell, targets):
    direct, forwarded = targets.get("direct"), targets.get("forwarded")
    bound, times = forwarded_bound(cell), stats.paired_ratio(forwarded, direct, "cpu_us")
    if not bound or times is None:
        return []
    figures = (direct["cpu_us"], forwarded["cpu_us"], times, bound)
    return [Verdict("CPU per command of forwarder and owner", cell.name, *figures)]


def judge_image(cell, targets):
    """What small commands are counted by is IOPS, what large ones are is MB/s."""
    librbd, ours = targets.get("librbd"), targets.get("rbd")
    metric, unit = ("iops", "IOPS") if cell.size < 65536 else ("mb_per_s", "MB/s")
    times = stats.paired_ratio(ours, librbd, metric)
    if times is None:
        return []
    figures = (librbd[metric], ours[metric], times, IMAGE_BOUND)
    return [Verdict(f"{unit} beside librbd", cell.name, *figures, at_most=False, unit=unit)]


def judge_sessions(cell, summaries):
    """Many sessions against one. Bare gets slower with them, too: each side is a multiple of bare's
    own in its cell and round."""
    if cell.sessions == 1 or cell.depth != 32 or cell.digests:
        return []
    alone = dataclasses.replace(cell, sessions=1)
    many, one = (
        stats.paired_ratio(targets.get("sluice"), targets.get("bare"), "cpu_us")
        for targets in (summaries[cell], summaries.get(alone, {}))
    )
    if not many or not one:
        return []
    text = f"CPU per command, {cell.sessions} sessions against one"
    return [Verdict(text, cell.name, one, many, many / one, SESSIONS_BOUND, unit="× bare")]


def judge_digests(summaries):
    """What digests add, summed over all pairs: single differences drown in their noise. Rounds are
    paired too, since a round measures a cell with and without digests one after the other."""
    ours_added = bare_added = 0.0
    pairs = 0
    for cell, targets in summaries.items():
        plain = summaries.get(cell.shape.cell(False), {})
        if not cell.digests or cell.depth == 1:
            continue
        if not all(name in side for name in ("bare", "sluice") for side in (plain, targets)):
            continue
        ours_added += stats.paired_difference(targets["sluice"], plain["sluice"], "cpu_us")
        bare_added += stats.paired_difference(targets["bare"], plain["bare"], "cpu_us")
        pairs += 1
    if pairs == 0 or bare_added <= 0:
        return None
    figures = (bare_added, ours_added, ours_added / bare_added, DIGEST_BOUND)
    return Verdict("what CRC32C adds", f"sum over {pairs} cells with and without", *figures)
