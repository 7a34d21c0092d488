"""The report of one experiment."""

import json
import os

from report import lines, pages, plot, study, units
from report.pages import DASH, Page, Plot, table

LIMITS = ("bare", "local")  # what the others are held against, the first that was measured
FIRST = ("bare", "local", "sluice")  # then the peers as they come
QUOTED = "target_cpu_s_per_command"


def ordered(subjects):
    return [s for s in FIRST if s in subjects] + [s for s in subjects if s not in FIRST]


def shown(figure, value):
    """A median with its spread, half the range."""
    if value is None:
        return DASH
    spread = f" ±{value.spread:.0%}" if value.low != value.high else ""
    return units.text(figure, value.median) + spread


def title(folder, name):
    """The heading of its README."""
    try:
        with open(os.path.join(folder, "README.md")) as f:
            return f.readline().lstrip("# ").strip() or name
    except OSError:
        return name


def quoted(experiment, settings):
    """The figure that counts: what plot.json says, else CPU per command, else the first."""
    names = experiment.figures()
    wanted = (settings.get("quoted"), settings.get("figure"), QUOTED)
    return next((n for n in wanted if n in names), names[0] if names else None)


def aims(experiment):
    if not experiment.aims:
        return ""
    rows = [
        [a["aim"], units.digits(a["value"]), a["bound"], "kept" if a["kept"] else "**missed**"]
        for a in experiment.aims
    ]
    kept = sum(a["kept"] for a in experiment.aims)
    head = ["aim", "measured", "bound", ""]
    return f"## Aims: {kept} of {len(rows)} kept\n\n" + table(head, rows)


def beside_limit(experiment, figure, limits=LIMITS):
    """One figure of all cells, subjects side by side."""
    subjects = ordered([s for s in experiment.subjects() if _has(experiment, s, figure)])
    limit = next((name for name in limits if name in subjects), None)
    rows = []
    for cell in experiment.cells.values():
        row = [units.parameters(next(iter(cell.values())).parameters, experiment.constant())]
        for name in subjects:
            series = cell.get(name)
            text = shown(figure, series.figure(figure) if series else None)
            times = lines.ratio(series, cell.get(limit), figure) if name != limit else None
            row.append(text + (f" ({times.median:.2f}×)" if times else ""))
        if set(row[1:]) != {DASH}:
            rows.append(row)
    if not rows:
        return ""
    bracket = f"; in brackets the multiple of {limit}, the median of the rounds' own ratios"
    text = f"Median ± half the range{bracket if limit and len(subjects) > 1 else ''}."
    return f"## {units.label(figure)}\n\n{text}\n\n" + table(["cell", *subjects], rows)


def _has(experiment, subject, figure):
    return any(c[subject].figure(figure) for c in experiment.cells.values() if subject in c)


def beside_study(experiment, entries):
    """Every figure of the study, and the same figure of each of ours where it was measured."""
    if not entries:
        return ""
    subjects = ordered(experiment.subjects())
    rows = []
    for (name, _, figure), same in _by_cell_and_figure(entries).items():
        cell = study.matching(same[0], experiment.cells)
        theirs = [f"{e['subject']} {units.text(figure, e['figures'][figure])}" for e in same]
        row = [name, units.parameters(same[0]["parameters"]), units.label(figure),
               "; ".join(theirs)]  # fmt: skip
        for subject in subjects:
            series = cell.get(subject) if cell else None
            row.append(shown(figure, series.figure(figure) if series else None))
        rows.append(row)
    head = ["study", "cell", "figure", "the study's", *subjects]
    return (
        "## Beside the study\n\nOther machines, networks and years: what compares is how figures"
        " of one column stand to each other.\n\n" + table(head, rows)
    )


def _by_cell_and_figure(entries):
    """A study's subjects that share a cell stand in one row."""
    found = {}
    for entry in entries:
        for figure in entry["figures"]:
            place = (entry["study"], lines.key(entry["parameters"]), figure)
            found.setdefault(place, []).append(entry)
    return found


def details(experiment, leave_out):
    names = [n for n in experiment.figures() if n != leave_out]
    rows = []
    for cell in experiment.cells.values():
        for subject in ordered(cell):
            series = cell[subject]
            values = [series.figure(n) for n in names]
            row = [units.parameters(series.parameters, experiment.constant()), subject]
            row += [units.text(n, v.median) if v else DASH for n, v in zip(names, values)]
            row.append(f"{len(series.quiet())}/{len(series.by_round)}")
            rows.append(row)
    if not rows or not names:
        return ""
    head = ["cell", "subject", *(units.label(n) for n in names), "rounds"]
    return (
        "## All figures\n\nMedians; *rounds*: how many count (the quiet ones, if at least two"
        " are) of how many.\n\n" + table(head, rows)
    )


def sessions(experiment):
    """What was negotiated, by subject; where cells differ, all values."""
    found = {}
    for cell in experiment.cells.values():
        for subject, series in cell.items():
            for name, value in (series.session or {}).items():
                found.setdefault(name, {}).setdefault(subject, {})[str(value)] = True
    if not found:
        return ""
    subjects = ordered({s: 1 for values in found.values() for s in values})
    rows = [
        [name, *(", ".join(values.get(s, ())) or DASH for s in subjects)]
        for name, values in sorted(found.items())
    ]
    return "## Negotiated\n\n" + table(["key", *subjects], rows)


def notes(experiment):
    found = dict.fromkeys(f"not measured: {why}" for why in experiment.skipped)
    for cell in experiment.cells.values():
        for subject, series in cell.items():
            found |= dict.fromkeys(f"{subject}: {note}" for note in series.notes)
    facts = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in experiment.facts.items())
    lines_ = [f"- {note}" for note in found] + ([f"- {facts}"] if facts else [])
    return "## Notes\n\n" + "\n".join(lines_) if lines_ else ""


def plot_settings(folder):
    path = os.path.join(folder, "plot.json")
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return json.load(f)


def noise(experiment):
    """A warning where most rounds waited for the cores."""
    every = [s for cell in experiment.cells.values() for s in cell.values()]
    rounds = sum(len(s.by_round) for s in every)
    noisy = rounds - sum(len(s.calm()) for s in every)
    if noisy * 2 <= rounds:
        return ""
    return (
        f"**The cores were busy: {noisy} of {rounds} measurements waited for them more than 3 % of the time**, because of other work on the"
        " machine or of the experiment's own processes. Their IOPS, MB/s and latencies describe the machine. CPU per command and its"
        " ratios still hold, with a spread."
    )


def plots(experiment, settings):
    """Those of plot.json whose figure was measured."""
    found = []
    for i, one in enumerate(settings.get("plots", [settings])):
        one = {"figure": quoted(experiment, settings)} | one
        if one["figure"] and plot.points(experiment, one):
            alt = one.get("title", units.label(one["figure"]))
            found.append(Plot(f"{i + 1}" if i else "", alt, lambda one=one: plot.figure(experiment, one)))
    return found


def page(experiment, folder, machine):
    """`machine`: facts of the run."""
    settings = plot_settings(folder)
    figure = quoted(experiment, settings)
    tables = dict.fromkeys([figure, *settings.get("also", ())])
    limits = (settings["limit"],) if "limit" in settings else LIMITS
    constant = experiment.constant()
    facts = pages.facts_table(machine)
    return Page(f"experiment-{experiment.name}", (
        f"# {title(folder, experiment.name)}",
        f"`bench/experiments/{experiment.name}/README.md` describes the study, the measurement and how to read this. All subjects"
        " alternate in one run. Figures to quote are target CPU per command and ratios; IOPS and MB/s depend on the machine.",
        noise(experiment),
        *plots(experiment, settings),
        aims(experiment),
        f"All cells: {units.parameters(constant)}." if constant else "",
        *(beside_limit(experiment, name, limits) for name in tables if name),
        beside_study(experiment, study.load(folder)),
        details(experiment, None if settings.get("also") else figure),
        sessions(experiment),
        notes(experiment),
        "## Machine\n\n" + facts if facts else "",
    ))  # fmt: skip
