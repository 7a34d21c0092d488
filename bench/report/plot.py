"""One plot per experiment: bars by cell and subject, or lines over one parameter (plot.json)."""

import os

from report import sections, units
from runner import plots

COLOURS = plots.COLOURS | {"local": "#5f6368", "istgt": "#c5221f"}
MOST_CELLS = 40  # more bars than that nobody reads


def draw(experiment, settings, directory):
    """Writes DIRECTORY/NAME.svg; its name, or none where nothing is to be drawn or matplotlib lacks."""
    figure_name = sections.quoted(experiment, settings) if "figure" not in settings else None
    name = settings.get("figure", figure_name)
    if not name or name not in experiment.figures() or not plots.possible():
        return None
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluice"
    from matplotlib import pyplot

    draw_on = _lines if settings.get("kind") == "lines" else _bars
    figure = draw_on(pyplot, experiment, name, settings)
    file = f"{experiment.name}.svg"
    figure.savefig(
        os.path.join(directory, file), bbox_inches="tight", metadata={"Date": None}
    )
    pyplot.close(figure)
    return file


def _bars(pyplot, experiment, name, settings):
    label, factor = units.axis(name)
    cells = [
        c for c in experiment.cells.values() if any(s.figure(name) for s in c.values())
    ][:MOST_CELLS]
    subjects = sections.ordered([s for s in experiment.subjects() if any(s in c for c in cells)])
    height = max(2.0, 0.16 * len(cells) * (len(subjects) + 1) + 1)
    figure, axis = pyplot.subplots(figsize=(8, height))
    thickness = 0.8 / len(subjects)
    for i, subject in enumerate(subjects):
        rows = [
            (row, c[subject].figure(name))
            for row, c in enumerate(cells)
            if subject in c and c[subject].figure(name)
        ]
        medians = [f.median * factor for _, f in rows]
        error = [
            [(f.median - f.low) * factor for _, f in rows],
            [(f.high - f.median) * factor for _, f in rows],
        ]
        axis.barh([r + i * thickness for r, _ in rows], medians, thickness, xerr=error,
                  label=subject, color=COLOURS.get(subject), error_kw={"lw": 0.6})  # fmt: skip
    axis.set_yticks([row + 0.4 - thickness / 2 for row in range(len(cells))])
    places = [next(iter(c.values())).parameters for c in cells]
    names = [units.parameters(place, experiment.constant()) for place in places]
    axis.set_yticklabels(names, fontsize=8)
    axis.invert_yaxis()
    axis.margins(y=0.01)
    _finish(axis, "x", label, settings)
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(subjects), frameon=False)
    return figure


def _lines(pyplot, experiment, name, settings):
    """One line for each subject and each set of the other parameters."""
    label, factor = units.axis(name)
    x = settings["x"]
    found = {}
    for cell in experiment.cells.values():
        for subject, series in cell.items():
            value = series.figure(name)
            if value is None or x not in series.parameters:
                continue
            apart = settings.get("series", [])
            rest = {k: v for k, v in series.parameters.items() if k in apart}
            text = f"{subject} {units.parameters(rest)}" if rest else subject
            found.setdefault(text, []).append((series.parameters[x], value))
    figure, axis = pyplot.subplots(figsize=(8, 4.5))
    for text, points in found.items():
        points.sort(key=lambda point: point[0])
        middle = [v.median * factor for _, v in points]
        below = [(v.median - v.low) * factor for _, v in points]
        above = [(v.high - v.median) * factor for _, v in points]
        axis.errorbar([p for p, _ in points], middle, yerr=[below, above], label=text,
                      marker="o", ms=3, lw=1, elinewidth=0.6)  # fmt: skip
    axis.set_xlabel(x.replace("_", " "))
    if settings.get("log_x"):
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
    _finish(axis, "y", label, settings)
    axis.legend(fontsize=8, frameon=False)
    return figure


def _finish(axis, which, label, settings):
    logarithmic = settings.get("log", which == "x")
    getattr(axis, f"set_{which}label")(label + (" (logarithmic)" if logarithmic else ""))
    if logarithmic:
        getattr(axis, f"set_{which}scale")("log")
    axis.grid(axis=which, lw=0.3)
