"""The report of bench/failover: how long a host's I/O stalls around a fault. Each record is one fault."""

import dataclasses
import math

from report import pages, style
from report.pages import Page, Plot, table, yes

NAME = "failover"
KILL, LINUX_KILL, MOVE, NODE_LOSS = "kill", "kill, a Linux host", "planned move", "node loss"
KINDS = {
    KILL: "The owner is killed",
    LINUX_KILL: "The owner is killed, as a Linux host sees it",
    MOVE: "A planned move",
    NODE_LOSS: "All links of the owner's node are cut",
}
PARTS = ("control plane", "gateways", "host")  # the process names of gateways begin with gw-
TAKEOVER_AIM = 0.2  # seconds, the median with one LUN
FLAT = 1.5  # the most that a stall may grow from the fewest to the most LUNs

HEAD = """The stall is the longest gap between two acknowledged operations on a LUN around a fault. The initiator runs in user space and changes
path on RST: at once for reads, and after the life of a forwarded command's token (0.5 s) for writes. The host reads and writes the
watched LUNs (`-watched`), which are spread over all LUNs; the other LUNs are idle. The table has the stalls of every fault and every
watched LUN that it struck. *All go on* ends when every LUN struck has a new owner and I/O of the watched ones goes on. The longest
operation of a fault is mostly a write that waited. Node loss is judged by the time beyond the 5 s after which the host abandons a
silent path.

A Linux host's stall is the longest time that one I/O of fio took on a dm-multipath map, with the settings that
`sluicectl host-config linux` recommends: NOP-Out every 2 s, 3 s to answer, fast_io_fail_tmo 1. The host is an emulated guest, whose CPU
is about ten times slower than a real one."""


def quantile(values, share):
    """By the nearest rank: the smallest value that at least this share of all values does not exceed. 0 of none."""
    ordered = sorted(values)
    rank = max(math.ceil(share * len(ordered)), 1)
    return ordered[rank - 1] if ordered else 0.0


@dataclasses.dataclass
class Group:
    """The faults of one kind with one number of LUNs. Times are in seconds."""

    kind: str
    luns: int
    faults: list

    def values(self, key):
        return [r.get(key, 0.0) for r in self.faults]

    def pooled(self, key):
        """Of every fault and LUN."""
        return [value for r in self.faults for value in r.get(key) or ()]

    @property
    def stalls(self):
        return self.pooled("stallsSeconds")

    @property
    def struck(self):
        return max(self.values("struck"))

    def aim(self):
        """What the group has to keep to, and whether it does."""
        median, p99, clean = quantile(self.stalls, 0.5), quantile(self.stalls, 0.99), sum(self.values("errors")) == 0
        if self.kind == KILL:
            return "median ≤ 0.5 s, p99 ≤ 2 s, no errors", median <= 0.5 and p99 <= 2 and clean
        if self.kind == LINUX_KILL:
            return "all ≤ 3 s, no errors", quantile(self.stalls, 1) <= 3 and clean
        if self.kind == MOVE:
            return "p99 ≤ 0.3 s, no errors", p99 <= 0.3 and clean
        beyond = quantile(self.values("beyondDetectionSeconds"), 1)
        return "all ≤ 5 s beyond the initiator's detection", beyond <= 5 and clean


def groups(records):
    found = {}
    for r in records:
        if "kind" in r:
            found.setdefault((list(KINDS).index(r["kind"]), r["luns"]), []).append(r)
    return [Group(faults[0]["kind"], luns, faults) for (_, luns), faults in sorted(found.items(), key=lambda item: item[0])]


def stalls(all_groups):
    rows = []
    for g in all_groups:
        aim, kept = g.aim()
        figures = [(g.stalls, 0.5), (g.stalls, 0.99), (g.stalls, 1), (g.values("allSeconds"), 0.5), (g.values("allSeconds"), 1),
                   (g.values("longestSeconds"), 0.5), (g.values("longestSeconds"), 1)]  # fmt: skip
        rows.append([g.kind, str(g.luns), str(g.struck), str(len(g.faults)), *(f"{quantile(v, share):.3f}" for v, share in figures),
                     str(sum(g.values("errors"))), str(sum(g.values("retries"))), aim, yes(kept)])  # fmt: skip
    head = ["fault", "LUNs", "struck", "times", "stall median s", "p99 s", "max s", "all go on median s", "max s",
            "longest operation median s", "max s", "errors", "retries", "aim", "kept"]  # fmt: skip
    return table(head, rows)


def storage(all_groups):
    """How long storage needed to fence an owner and to serve the volume for the next one."""
    rows = []
    for g in all_groups:
        times = g.pooled("takeoversSeconds")
        if not times:
            continue
        median = quantile(times, 0.5)
        aim, kept = ("median ≤ 0.2 s", yes(median <= TAKEOVER_AIM)) if g.luns == 1 else ("", "")
        rows.append([g.kind, str(g.luns), str(len(times)), f"{median:.3f}", f"{quantile(times, 0.99):.3f}", f"{max(times):.3f}", aim, kept])
    if not rows:
        return ""
    head = ["fault", "LUNs", "times", "median s", "p99 s", "max s", "aim", "kept"]
    return (
        "## Storage's part\n\nFrom the start of fencing an owner in Ceph until the next owner serves the volume: epoch, blocklist, map,"
        " lock, reservations. One gateway is fenced once, however many volumes it owned.\n\n" + table(head, rows)
    )


def flatness(all_groups):
    rows = []
    for kind in KINDS:
        mine = [g for g in all_groups if g.kind == kind]
        if len(mine) < 2:
            continue
        few, many = mine[0], mine[-1]
        row, ratios = [kind, f"{few.luns}, {many.luns}"], []
        for get in (lambda g: g.stalls, lambda g: g.values("allSeconds")):
            before, after = quantile(get(few), 0.5), quantile(get(many), 0.5)
            ratios.append(after / before)
            row += [f"{before:.3f}, {after:.3f}", f"{after / before:.2f}×"]
        rows.append([*row, yes(ratios[0] <= FLAT)])
    if not rows:
        return ""
    head = ["fault", "LUNs", "stall s", "ratio", "all go on s", "ratio", "flat"]
    return (
        f"## Flatness\n\nThe median with the most LUNs over that with the fewest. A stall is flat up to {FLAT}×.\n\n" + table(head, rows)
    )


def part_of(process):
    """etcd is a part of the control plane."""
    if process.startswith("gw-"):
        return "gateways"
    return process if process == "host" else "control plane"


def costs(record):
    """{part: milliseconds of CPU time for each volume struck}, beyond what the part uses undisturbed."""
    each = dict.fromkeys(PARTS, 0.0)
    for process, seconds in record["cpuSeconds"].items():
        calm = record.get("calmCPUSeconds", {}).get(process, 0.0)
        each[part_of(process)] += max(0.0, seconds - calm) * 1000 / max(record["struck"], 1)
    return each


def work(all_groups):
    rows = []
    for g in all_groups:
        each = [costs(r) for r in g.faults if r.get("cpuSeconds")]
        if each:
            medians = [quantile([c[part] for c in each], 0.5) for part in PARTS]
            rows.append([g.kind, str(g.luns), str(g.struck), *(f"{m:.3f}" for m in medians)])
    if not rows:
        return ""
    return (
        "## CPU time\n\nFrom the fault until all LUNs go on, for each volume struck, beyond what each part uses undisturbed: medians in ms."
        " The control plane includes etcd. The gateway that was killed is in no figure.\n\n"
        + table(["fault", "LUNs", "struck", *PARTS], rows)
    )


def figure(all_groups):
    panels = []
    quantity = style.Quantity("stall: median, and a line to the longest", "s")
    for kind, title in KINDS.items():
        mine = [g for g in all_groups if g.kind == kind]
        if not mine:
            continue
        values = []
        for g in mine:
            median, longest = quantile(g.stalls, 0.5), max(g.stalls)
            values.append(style.Value(median, median, longest, f"{median:.3f}, longest {longest:.3f}"))
        rows = tuple(f"{g.luns:,} LUN{'s' if g.luns > 1 else ''}\n{len(g.faults)} faults" for g in mine)
        panels.append(style.Bars(title, quantity, rows, {kind: tuple(values)}))
    return style.draw("How long a host's I/O stalls around a fault; each kind of fault has its own scale", panels, columns=1, shared=False)


def page(records, name=NAME):
    facts = {}
    for r in records:
        facts |= r.get("facts", {})
    found = groups(records)
    machine = pages.facts_table(facts)
    return Page(name, (
        "# Failover as a host sees it" + (f": volumes in {facts['storage']}" if "storage" in facts else ""),
        HEAD,
        Plot("", "Stalls of a host's I/O: bars of the median for each kind of fault and number of LUNs", lambda: figure(found)),
        "## Stalls\n\n" + stalls(found),
        storage(found),
        flatness(found),
        work(found),
        "## Run\n\n" + machine if machine else "",
    ))  # fmt: skip
