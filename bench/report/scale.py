"""The report of bench/scale: memory, start and failover of many LUNs and sessions. Records name themselves by `what`."""

from report import pages, style
from report.pages import Page, Plot, table

NAME = "scale"
EMPTY, FULL = "one LUN, no session", "all LUNs, no session"
LOGGED_IN, USED = "all LUNs, all sessions", "the same, each session has used some LUNs"
MIB = 1 << 20
TIMES = {  # of a gateway that was killed
    "failoverSeconds": "from SIGKILL until another owner serves the last of its LUNs",
    "portalsOpenSeconds": "from its start until its portals are open",
    "firstAnswerSeconds": "from its start until a LUN answers a host",
}


def of(records, what):
    return [r for r in records if r.get("what") == what]


def per_lun(memory):
    """Bytes of PSS that a LUN uses in one gateway; None where it was not measured."""
    before, after = memory.get(EMPTY), memory.get(FULL)
    if not before or not after or after["luns"] == before["luns"]:
        return None
    return (after["pssBytes"] - before["pssBytes"]) / ((after["luns"] - before["luns"]) * after["gateways"])


def per_session(memory, stage):
    """Bytes of PSS that a session uses in its gateway."""
    before, after = memory.get(FULL), memory.get(stage)
    if not before or not after or not after["sessions"]:
        return None
    return (after["pssBytes"] - before["pssBytes"]) / after["sessions"]


def head(run):
    text = f"# {run['luns']} LUNs, {run['sessions']} sessions, {run['gateways']} gateways on one machine\n\n"
    text += "Every gateway exports every LUN and has one reactor."
    if "madeSeconds" in run:
        text += f" All LUNs were created and owned after {run['madeSeconds']:.1f} s."
    if "loginSeconds" in run:
        text += f" All sessions were logged in after {run['loginSeconds']:.1f} s."
    if run.get("failed"):
        text += f"\n\n**The run ended early**: {run['failed'].splitlines()[0]}"
    return text


def memory_section(memory, used_luns):
    rows = []
    for stage, m in memory.items():
        pss = m["pssBytes"] / MIB
        rows.append([stage, str(m["luns"]), str(m["sessions"]), f"{m['rssBytes'] / MIB:.1f}", f"{pss:.1f}", f"{pss / m['gateways']:.1f}"])
    each = [
        ["a LUN, in each gateway that exports it", per_lun(memory)],
        ["a session, logged in", per_session(memory, LOGGED_IN)],
        [f"a session that has used {used_luns} LUNs", per_session(memory, USED)],
    ]
    found = [[what, f"{size / 1024:.1f}"] for what, size in each if size is not None]
    return (
        "## Memory\n\nRSS and PSS are those of all gateways together. RSS counts shared pages in every gateway, PSS counts them once.\n\n"
        + table(["stage", "LUNs", "sessions", "RSS MiB", "PSS MiB", "PSS of a gateway MiB"], rows)
        + ("\n\n" + table(["what", "KiB"], found) if found else "")
    )


def upper_median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def deaths_section(deaths):
    if not deaths:
        return ""
    rows = []
    for key, text in TIMES.items():
        values = [d[key] for d in deaths]
        rows.append([text, f"{upper_median(values):.3f}", f"{max(values):.3f}"])
    luns = ", ".join(str(d["luns"]) for d in deaths)
    return (
        f"## A gateway is killed and starts again, {len(deaths)} times\n\nIt owned {luns} LUNs.\n\n"
        + table(["time", "median s", "max s"], rows)
    )


def memory_figure(memory):
    rows = tuple(
        f"{m['luns']:,} LUN{'s' if m['luns'] > 1 else ''}, {m['sessions']:,} sessions{', used' if stage == USED else ''}"
        for stage, m in memory.items()
    )
    values = []
    for m in memory.values():
        size = m["pssBytes"] / MIB / m["gateways"]
        values.append(style.Value(size, size, size))
    panel = style.Bars("", style.Quantity("memory (PSS) of a gateway", "MiB"), rows, {"memory": tuple(values)})
    return style.draw("Memory of one gateway, by what it serves", [panel])


def times_figure(deaths):
    values = []
    for key in TIMES:
        each = [d[key] for d in deaths]
        median = upper_median(each)
        values.append(style.Value(median, min(each), max(each), f"{median:.2f}, longest {max(each):.2f}"))
    rows = ("failover of all its LUNs", "its portals are open again", "a LUN answers a host")
    panel = style.Bars("", style.Quantity("time: median, shortest to longest", "s"), rows, {"time": tuple(values)})
    return style.draw("Times of a gateway that is killed and starts again", [panel])


def page(records, name=NAME):
    facts = {}
    for r in records:
        facts |= r.get("facts", {})
    memory = {m["stage"]: m for m in of(records, "memory")}
    deaths = of(records, "death")
    last = list(memory.values())[-1]
    run = {"luns": last["luns"], "sessions": last["sessions"], "gateways": last["gateways"], "usedLUNs": 4}
    for r in of(records, "run"):
        run |= r
    machine = pages.facts_table(facts)
    return Page(name, (
        head(run),
        Plot("memory", "Memory of a gateway by number of LUNs and sessions", lambda: memory_figure(memory)),
        memory_section(memory, run["usedLUNs"]),
        Plot("times", "Times of failover and start of a gateway", lambda: times_figure(deaths)) if deaths else "",
        deaths_section(deaths),
        "## Run\n\n" + machine if machine else "",
    ))  # fmt: skip
