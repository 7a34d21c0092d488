"""The report of the engine's cells: aims first, then every cell. Its records are those of bench/run.py."""

from report import pages, style
from report.pages import DASH, Page, Plot, table
from runner import aims, cells, stats, takeover

NAME = "engine"
REFERENCES = {"volume": "direct", "disk": "direct", "rbd": "librbd"}  # of the others it is bare
ORDER = ("bare", "sluice", "tgt", "direct", "forwarded", "librbd", "rbd")
CPU = style.Quantity("target CPU per command", "µs")
SHOWN = {"bare": "bare echo", "sluice": "Sluice", "tgt": "tgt"}  # in the plot of 4 KiB commands
JUDGED = {"sluice": "bare", "forwarded": "direct", "rbd": "librbd"}  # subjects of the plot of ratios, with their references
COMMANDS_4K = {
    cells.Cell(store, op, 4096, 32, 1, False).name: f"{op}, {text}"
    for op in cells.OPS
    for store, text in (("null", "null LUN"), ("memory", "RAM"))
}


def number(value):
    if value is None:
        return DASH
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def facts_section(facts, busy):
    shown = facts | {f"client busy against {t}": f"{low:.0%} – {high:.0%}" for t, low, high in busy}
    text = "## Machine\n\n" + pages.facts_table(shown)
    if facts.get("congestion") not in ("cubic", "reno"):
        text += (
            f"\n\n**Congestion control is {facts.get('congestion')}.** The run could not fix it, because that needs a private"
            " network namespace. Large transfers may cost twice as much CPU."
        )
    return text


def busy_shares(summaries):
    shares = {}
    for targets in summaries.values():
        for name, summary in targets.items():
            shares.setdefault(name, []).append(summary["client_busy"])
    return [(name, min(shares[name]), max(shares[name])) for name in ORDER if name in shares]


def aims_section(verdicts):
    if not verdicts:
        return "## Aims\n\nNothing to judge: sluice-gateway was not measured."
    rows = []
    for v in verdicts:
        sign = "≤" if v.at_most else "≥"
        rows.append(
            [v.aim, v.cell, f"{number(v.reference)} {v.unit}", f"{number(v.ours)} {v.unit}",
             f"{v.ratio:.2f}×", f"{sign} {v.bound:g}×", "met" if v.met else "**missed**"]
        )  # fmt: skip
    met = sum(v.met for v in verdicts)
    head = ["aim", "cell", "reference", "sluice", "ratio", "aim", ""]
    return f"## Aims: {met} of {len(verdicts)} met\n\n{table(head, rows)}"


def _bound(cell):
    return aims.cpu_bound(cell) or aims.forwarded_bound(cell)


def cpu_section(summaries):
    names = [n for n in ORDER if any(n in targets for targets in summaries.values())]
    rows = []
    for cell, targets in summaries.items():
        row = [cell.name]
        for name in names:
            summary = targets.get(name)
            if summary is None:
                row.append(DASH)
                continue
            text = f"{number(summary['cpu_us'])} ±{summary.figures['cpu_us'].spread:.0%}"
            reference = REFERENCES.get(cell.store, "bare")
            times = stats.paired_ratio(summary, targets.get(reference), "cpu_us")
            if name != reference and times is not None:
                text += f" ({times:.2f}×)"
            row.append(text)
        row.append(f"≤ {_bound(cell):g}×" if _bound(cell) else "")
        rows.append(row)
    return (
        "## Target CPU, µs per command\n\nMedian ± half the range. Brackets hold the ratio to the reference: the median of the"
        " rounds' own ratios. The reference is `bare`, the echo server without iSCSI. Of a page-cached file it uses preadv and"
        " pwritev. `direct` and `forwarded` are a cluster's volume through its owner and through another"
        " gateway, with the CPU of both gateways together; the reference of `forwarded` is `direct`. `librbd` is fio with its"
        " rbd engine, `rbd` the gateway on the same image; the reference of `rbd` is `librbd`.\n\n"
        + table(["cell", *names, "aim (sluice)"], rows)
    )


def detail_section(summaries):
    rows = []
    for cell, targets in summaries.items():
        for name in ORDER:
            if name not in targets:
                continue
            s = targets[name]
            rows.append(
                [cell.name, name, number(s["iops"]), number(s["mb_per_s"]), number(s["p50_us"]),
                 number(s["p99_us"]), number(s["p999_us"]), number(s["batch"]),
                 f"{s['target_cpu']:.0%}", f"{s['client_busy']:.0%}", f"{s.quiet}/{s.rounds}"]
            )  # fmt: skip
    head = ["cell", "target", "IOPS", "MB/s", "p50 µs", "p99 µs", "p99.9 µs", "commands/receive",
            "target core", "client busy", "quiet rounds"]  # fmt: skip
    return "## Throughput and latency\n\n" + table(head, rows)


def notes_section(notes):
    return "## Notes\n\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def cpu_figure(found):
    """`found`: {cell name: {target: Value}} in µs, of the cells of COMMANDS_4K that were measured."""
    rows = [name for name in COMMANDS_4K if name in found]
    series = {
        text: tuple(found[row].get(name) for row in rows)
        for name, text in SHOWN.items()
        if any(name in found[row] for row in rows)
    }
    panel = style.Bars("", CPU, tuple(COMMANDS_4K[row] for row in rows), series)
    return style.draw("Target CPU per 4 KiB command, 32 in flight on one session", [panel])


def ratio_figure(found):
    """`found`: {subject: {cell name: Value}}, ratios to the subject's reference."""
    panels = []
    for subject, ratios in found.items():
        rows = list(ratios)[: style.MOST_ROWS]
        title = f"{subject}, as a multiple of {JUDGED[subject]}"
        if len(ratios) > len(rows):
            title += f"; the first {len(rows)} of {len(ratios)} cells, the table has all"
        quantity = style.Quantity(f"CPU per command over that of {JUDGED[subject]}", "×")
        panels.append(style.Bars(title, quantity, tuple(rows), {subject: tuple(ratios[r] for r in rows)}))
    return style.draw("CPU per command as a multiple of the reference measured in the same rounds", panels, shared=False)


def _value(figure, text=""):
    return style.Value(figure.median, figure.low, figure.high, text)


def _cpu_values(summaries):
    return {
        cell.name: {name: _value(s.figures["cpu_us"]) for name, s in targets.items()}
        for cell, targets in summaries.items()
        if cell.name in COMMANDS_4K and any(name in targets for name in SHOWN)
    }


def _ratios(summaries):
    found = {}
    for cell, targets in summaries.items():
        for subject, reference in JUDGED.items():
            ratios = stats.paired_ratios(targets.get(subject), targets.get(reference), "cpu_us")
            if ratios:
                value = stats.figure(ratios)
                found.setdefault(subject, {})[cell.name] = _value(value, ratio_text(cell, value.median))
    return found


def ratio_text(cell, ratio):
    return f"{ratio:.2f}×" + (f" (aim ≤ {_bound(cell):g}×)" if _bound(cell) else "")


def plots(cpu, ratios):
    """Of what cpu_figure and ratio_figure take; none of nothing."""
    found = []
    if cpu:
        found.append(Plot("cpu", "Target CPU per 4 KiB command: bars of the bare echo, Sluice and tgt", lambda: cpu_figure(cpu)))
    if ratios:
        found.append(Plot("ratio", "CPU per command of each cell as a multiple of its reference", lambda: ratio_figure(ratios)))
    return found


def page(records, name=NAME):
    """The page of a run's records: measurements, facts, notes, takeovers."""
    facts, notes, verdicts, measured = {}, [], [], []
    for record in records:
        facts |= record.get("facts", {})
        if "note" in record:
            notes.append(record["note"])
        elif "takeover_ms" in record:
            verdicts.append(takeover.verdict(record["takeover_ms"]))
        elif "target" in record:
            measured.append(record)
    summaries = stats.by_cell(measured, cells.from_record)
    return Page(name, (
        "# CPU, throughput and latency of the gateway's engine",
        aims_section(aims.judge(summaries) + verdicts),
        *plots(_cpu_values(summaries), _ratios(summaries)),
        cpu_section(summaries),
        detail_section(summaries),
        facts_section(facts, busy_shares(summaries)),
        notes_section(notes),
    ))  # fmt: skip
