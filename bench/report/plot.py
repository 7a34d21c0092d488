"""The plots of an experiment, as its plot.json describes them (bench/experiments/README.md)."""

import dataclasses

from report import style, units

SUBJECT = "subject"


@dataclasses.dataclass(frozen=True)
class Point:
    """One subject's figure in one cell; `parameters` holds the subject too."""

    parameters: dict
    value: style.Value


def points(experiment, settings):
    """Of the cells that `only` leaves, in the order in which they were measured."""
    name = settings["figure"]
    _, factor = units.quantity(name)
    found = []
    for cell in experiment.cells.values():
        for subject, series in cell.items():
            parameters = series.parameters | {SUBJECT: subject}
            value = series.figure(name)
            if value is not None and _wanted(parameters, settings.get("only", {})):
                scaled = style.Value(value.median * factor, value.low * factor, value.high * factor)
                found.append(Point(parameters, scaled))
    return found


def _wanted(parameters, only):
    """A cell without the parameter is wanted where null is among the values."""
    return all(parameters.get(name) in values for name, values in only.items())


def figure(experiment, settings):
    found = points(experiment, settings)
    apart = settings.get("panels", [])
    series = settings.get("series", [SUBJECT])
    panels = {}
    for point in found:
        panels.setdefault(_words(point, apart, settings), []).append(point)
    make = _lines if settings.get("kind") == "lines" else _bars
    drawn = [make(title, mine, series, apart, settings) for title, mine in panels.items()]
    return style.draw(settings.get("title", experiment.name), drawn, settings.get("columns", 0), settings.get("shared", True))


def _words(point, names, settings):
    """The values of these parameters as words; `names` of plot.json may say them better."""
    better = settings.get("names", {})
    words = []
    for name in names:
        if name not in point.parameters:
            continue
        value = point.parameters[name]
        key = f"{name} {value}"
        if key in better:
            words.append(better[key])
        else:
            words.append(str(value) if name == SUBJECT else units.parameters({name: value}))
    return ", ".join(w for w in words if w)


def _bound(settings):
    bound = settings.get("bound")
    return style.Bound(bound["value"], bound["text"]) if bound else None


def _bars(title, mine, series, apart, settings):
    quantity, _ = units.quantity(settings["figure"])
    constant = {k for k in mine[0].parameters if len({str(p.parameters.get(k)) for p in mine}) == 1}
    hidden = {*series, *apart, *settings.get("hide", [])} | (constant if len(mine) > 1 else set())
    rows, names = {}, {}
    for point in mine:
        row = _words(point, [n for n in point.parameters if n not in hidden and n != SUBJECT], settings) or "all"
        name = _words(point, series, settings)
        rows.setdefault(row, {})[name] = point.value
        names[name] = True
    shown = list(rows)[: style.MOST_ROWS]
    if len(shown) < len(rows):
        title = f"{title or 'Cells'}: the first {len(shown)} of {len(rows)}, the table has all"
    ordered = sorted(names, key=lambda n: _order(n))
    return style.Bars(title, quantity, tuple(shown), {n: tuple(rows[r].get(n) for r in shown) for n in ordered}, _bound(settings))


def _order(name):
    first = ("local", "bare", "bare echo", "sluice")
    return first.index(name) if name in first else len(first)


def _lines(title, mine, series, apart, settings):
    y, _ = units.quantity(settings["figure"])
    x = settings["x"]
    found = {}
    for point in mine:
        # An experiment with several axes says in the parameter `x` names with @ which parameter grows.
        name = point.parameters[x[1:]] if x.startswith("@") else x
        if name in point.parameters:
            found.setdefault(_words(point, series, settings), {})[point.parameters[name]] = point.value
    label = style.Quantity(title if x.startswith("@") else x, settings.get("x_unit", style.NUMBER))
    xs = sorted({v for values in found.values() for v in values})
    log = settings.get("log_x", False)
    ticks = style.log_ticks(xs, units.size if x == "size" else "{:,}".format) if log else ()
    return style.Lines(title, label, y, {n: tuple(sorted(values.items())) for n, values in found.items()}, log, ticks, _bound(settings))
