"""The rules of style.py for a finished figure, by what is in it: every plot of every report must keep them."""

import os
import re

from report.style import MOST_ROWS, NUMBER

MOST_SERIES = 6  # in one panel
MOST_BYTES = 60_000  # of an SVG file


def problems(figure):
    """The rules that a figure breaks, each as a sentence."""
    figure.draw_without_rendering()
    found = [] if figure._suptitle and figure._suptitle.get_text() else ["the figure has no title"]
    if figure.legends:
        found.append("the figure has a legend instead of direct labels")
    for number, axis in enumerate(figure.axes, 1):
        found += [f"panel {number}: {text}" for text in _problems_of_panel(axis)]
    return found + _outside(figure)


def _problems_of_panel(axis):
    found = []
    names = series(axis)
    if len(names) > MOST_SERIES:
        found.append(f"{len(names)} series, at most {MOST_SERIES} are readable")
    if axis.get_legend():
        found.append("a legend instead of direct labels")
    labels = [t.get_text() for t in axis.texts]
    if len(names) > 1:
        found += [f"the series {n} has no direct label" for n in names if not any(n in text for text in labels)]
    for which in ("x", "y"):
        found += _problems_of_axis(axis, which)
    return found + _overlaps(axis)


def series(axis):
    """The names of the series of a panel."""
    artists = [*axis.containers, *axis.lines]
    return list(dict.fromkeys(a.get_label() for a in artists if not str(a.get_label()).startswith("_")))


def _problems_of_axis(axis, which):
    from matplotlib import ticker

    scale = getattr(axis, f"{which}axis")
    names_rows = bool(axis.patches) and which == "y"
    values = which == ("x" if axis.patches else "y")
    shown = [t.get_text() for t in scale.get_ticklabels() if t.get_visible() and t.get_text()]
    found = []
    label = scale.get_label().get_text()
    if not names_rows and shown and not re.search(r"\S \([^()]+\)$", label):
        found.append(f"the {which} axis has no label with a unit in brackets: {label!r}")
    if names_rows and len(shown) > MOST_ROWS:
        found.append(f"{len(shown)} rows of bars, at most {MOST_ROWS} are readable")
    if values and scale.get_scale() != "linear":
        found.append(f"the values of the {which} axis are not linear")
    if values and getattr(axis, f"get_{which}lim")()[0] != 0:
        found.append(f"the values of the {which} axis do not start at 0")
    if values and _greatest(axis, which) > getattr(axis, f"get_{which}lim")()[1]:
        found.append(f"values are beyond the end of the {which} axis")
    if label.endswith(f"({NUMBER})") and not isinstance(scale.get_major_formatter(), ticker.FixedFormatter):
        low, high = sorted(getattr(axis, f"get_{which}lim")())
        if any(t != int(t) for t in scale.get_majorticklocs() if low <= t <= high):
            found.append(f"the {which} axis counts, and has a tick that is no integer")
    return found


def _greatest(axis, which):
    """Of bars, points, and the lines that show their spread."""
    index = "xy".index(which)
    ends = [patch.get_x() + patch.get_width() for patch in axis.patches]
    ends += [value for line in axis.lines if line.get_label() != "_bound" for value in line.get_xydata()[:, index]]
    ends += [path.vertices[:, index].max() for spread in axis.collections if spread.get_label() != "_shade" for path in spread.get_paths() if len(path.vertices)]
    return max(ends, default=0)


def _overlaps(axis):
    """Labels of series or bars, and labels of ticks."""
    return _overlaps_of(axis, axis.texts) + _overlaps_of(axis, [*axis.get_xticklabels(), *axis.get_yticklabels()])


def _overlaps_of(axis, texts):
    renderer = axis.figure.canvas.get_renderer()
    placed = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_visible() and t.get_text()]
    return [
        f"the labels {a!r} and {b!r} overlap"
        for i, (a, one) in enumerate(placed)
        for b, other in placed[i + 1 :]
        if one.x0 < other.x1 and other.x0 < one.x1 and one.y0 + 1 < other.y1 and other.y0 + 1 < one.y1
    ]


def _outside(figure):
    """Texts that the figure's edge cuts."""
    renderer = figure.canvas.get_renderer()
    edge = figure.bbox
    found = []
    for text in _texts(figure):
        if not text.get_visible() or not text.get_text().strip():
            continue
        box = text.get_window_extent(renderer)
        if box.x0 < edge.x0 - 1 or box.x1 > edge.x1 + 1 or box.y0 < edge.y0 - 1 or box.y1 > edge.y1 + 1:
            found.append(f"the text {text.get_text()!r} does not fit into the figure")
    return found


def _texts(figure):
    """All but the labels of ticks with numbers, of which matplotlib keeps some that it does not draw."""
    found = [figure._suptitle] if figure._suptitle else []
    for axis in figure.axes:
        found += [*axis.texts, axis.title, axis._left_title, axis._right_title, axis.xaxis.label, axis.yaxis.label]
        if axis.patches:
            found += axis.get_yticklabels()
    return found


def problems_of_file(path):
    size = os.path.getsize(path)
    return [f"the file has {size:,} bytes, at most {MOST_BYTES:,} are allowed"] if size > MOST_BYTES else []
