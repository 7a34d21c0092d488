"""The Markdown report: aims first, then every cell."""

from runner import aims, stats

REFERENCES = {"volume": "direct", "disk": "direct", "rbd": "librbd"}  # of the others it is bare
ORDER = ("bare", "bare-pread", "sluice", "tgt", "direct", "forwarded", "librbd", "rbd")


def number(value):
    if value is None:
        return "—"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def facts_section(facts, busy):
    rows = [[key.replace("_", " "), str(value)] for key, value in facts.items() if value != ""]
    rows += [[f"client busy against {t}", f"{low:.0%} – {high:.0%}"] for t, low, high in busy]
    text = "## Machine\n\n" + table(["fact", "value"], rows)
    if facts["congestion"] not in ("cubic", "reno"):
        text += (
            f"\n\n**Congestion control is {facts['congestion']}**: it could not be fixed (that"
            " takes a private network namespace), and large transfers may cost twice as much."
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


def cpu_section(summaries):
    names = [n for n in ORDER if any(n in targets for targets in summaries.values())]
    rows = []
    for cell, targets in summaries.items():
        row = [cell.name]
        for name in names:
            summary = targets.get(name)
            if summary is None:
                row.append("—")
                continue
            text = f"{number(summary['cpu_us'])} ±{summary.figures['cpu_us'].spread:.0%}"
            reference = REFERENCES.get(cell.store, "bare")
            times = stats.paired_ratio(summary, targets.get(reference), "cpu_us")
            if name != reference and times is not None:
                text += f" ({times:.2f}×)"
            row.append(text)
        bound = aims.cpu_bound(cell) or aims.forwarded_bound(cell)
        row.append(f"≤ {bound:g}×" if bound else "")
        rows.append(row)
    return (
        "## Target CPU, µs per command\n\nMedian ± half the range; in brackets the ratio to the"
        " limit (bare), the median of the rounds' own ratios. `bare` maps the RAM file,"
        " `bare-pread` reads and writes it by preadv and pwritev. `direct` and `forwarded` are a"
        " cluster's volume through its owner and through the other gateway, the CPU of both"
        " gateways together; the ratio is `forwarded` to `direct`. `librbd` is fio with its rbd"
        " engine, `rbd` the gateway on the same image; the ratio is `rbd` to `librbd`.\n\n"
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


def markdown(facts, summaries, verdicts, notes):
    sections = [
        "# Sluice beside tgt and the limit",
        aims_section(verdicts),
        cpu_section(summaries),
        detail_section(summaries),
        facts_section(facts, busy_shares(summaries)),
        notes_section(notes),
    ]
    return "\n\n".join(s for s in sections if s) + "\n"
