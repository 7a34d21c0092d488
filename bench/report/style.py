"""The one style of all plots: axes with units, at most six series, direct labels, an honest zero.

A figure is a title and panels. `draw` makes it, and `save` writes it as an SVG. rules.py names the rules that a figure breaks.
matplotlib is Debian's python3-matplotlib.
"""

import dataclasses
import importlib.util
import io
import math
import re
import textwrap

MOST_ROWS = 14  # of bars in one panel: a report shows the first ones, and says how many there are
NUMBER = "number"  # the unit of what is counted: its ticks are integers

BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#1a73e8", "#d9640a", "#188038", "#8430ce", "#c5221f", "#80868b"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
# A subject has the same colour in every plot. Sluice is blue, references are grey.
COLOURS = {"sluice": BLUE, "Sluice": BLUE, "bare": GREY, "bare echo": GREY, "local": GREY, "standalone": GREY,
           "tgt": ORANGE, "istgt": RED, "sluice-durable": PURPLE,
           "direct": BLUE, "forwarded": GREEN, "librbd": GREY, "rbd": BLUE}  # fmt: skip
SETTINGS = {
    "svg.fonttype": "none",  # text stays text: small files, and a reader can search in them
    "svg.hashsalt": "sluice",  # the same figure is the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dadce0",
}
WIDTH, BAR, LINES_HEIGHT = 8.0, 0.2, 2.8  # inches


def possible():
    return importlib.util.find_spec("matplotlib") is not None


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What an axis shows, and its unit."""

    name: str
    unit: str

    @property
    def label(self):
        return f"{self.name} ({self.unit})"


@dataclasses.dataclass(frozen=True)
class Value:
    """A median with the lowest and highest value beside it; with `text` where its own digits do not suffice."""

    median: float
    low: float
    high: float
    text: str = ""


@dataclasses.dataclass(frozen=True)
class Bound:
    """An aim, as a dashed line."""

    value: float
    text: str


@dataclasses.dataclass(frozen=True)
class Bars:
    """Horizontal bars: rows by name, with a bar of each series. A missing value is None."""

    title: str
    quantity: Quantity
    rows: tuple
    series: dict  # {name: (Value or None for each row)}
    bound: Bound | None = None


@dataclasses.dataclass(frozen=True)
class Shade:
    """An interval of x in which something happens, as a grey area."""

    begin: float
    end: float
    text: str


@dataclasses.dataclass(frozen=True)
class Lines:
    """Lines over x: {name: ((x, Value), ...)}, sorted by x."""

    title: str
    x: Quantity
    y: Quantity
    series: dict
    log_x: bool = False
    ticks: tuple = ()  # (x, text), where numbers alone are hard to read
    bound: Bound | None = None
    shades: tuple = ()
    points: bool = True  # a mark for each value; without, many values are a line


def digits(value):
    """Three digits count."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def draw(title, panels, columns=0, shared=True):
    """A figure of panels of one kind. With `shared` they have the same scale; without, each has its own."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = columns or (1 if isinstance(panels[0], Bars) else min(len(panels), 3))
    rows = math.ceil(len(panels) / columns)
    with matplotlib.rc_context(SETTINGS):
        heights = [max(_height(p) for p in panels[r * columns : (r + 1) * columns]) for r in range(rows)]
        wrapped = textwrap.fill(title, 88)
        height = sum(heights) + 0.25 * (wrapped.count("\n") + 1) + 0.1
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(wrapped, x=0.01, ha="left", weight="bold", size=10.5)
        bars = isinstance(panels[0], Bars)
        axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights, sharex=shared and bars, sharey=shared and not bars)
        flat = list(axes.flat)
        for unused in flat[len(panels) :]:
            unused.remove()
        for axis, panel in zip(flat, panels):
            (_bars if isinstance(panel, Bars) else _lines)(axis, panel)
        if shared:
            _hide_inner_labels(flat, panels, columns)
        figure.draw_without_rendering()
        for axis in flat[: len(panels)]:
            _place_labels(axis)
        figure.draw_without_rendering()
    return figure


def _hide_inner_labels(axes, panels, columns):
    """A label that the panel to the left, or below, has as well is shown once."""
    for i, panel in enumerate(panels):
        bars = isinstance(panel, Bars)
        left, below = panels[i - 1] if i % columns else None, panels[i + columns] if i + columns < len(panels) else None
        if left and (panel.rows == left.rows if bars else panel.y == left.y):
            axes[i].set_ylabel("")
            axes[i].tick_params(axis="y", labelleft=False)
        if bars and below and panel.quantity == below.quantity:
            axes[i].set_xlabel("")
            axes[i].tick_params(axis="x", labelbottom=False)


def _height(panel):
    if isinstance(panel, Lines):
        return LINES_HEIGHT
    bars = sum(v is not None for values in panel.series.values() for v in values)
    return BAR * bars + 0.1 * len(panel.rows) + 0.75


def _places(panel):
    """{(row, series): y} of every bar, and the y of every row's name. Rows are half a bar apart."""
    places, rows, y = {}, [], 0.0
    for row in range(len(panel.rows)):
        present = [name for name, values in panel.series.items() if values[row] is not None]
        rows.append(y + max(len(present) - 1, 0) / 2)
        places |= {(row, name): y + i for i, name in enumerate(present)}
        y += max(len(present), 1) + 0.5
    return places, rows


def _bars(axis, panel):
    places, rows = _places(panel)
    several = len(panel.series) > 1
    for i, (name, values) in enumerate(panel.series.items()):
        found = [(places[row, name], v) for row, v in enumerate(values) if v is not None]
        if not found:
            continue
        axis.barh([y for y, _ in found], [v.median for _, v in found], 0.85, color=colour(name, i), label=name)
        spread = [(y, v) for y, v in found if v.low != v.high]
        if spread:
            axis.hlines([y for y, _ in spread], [v.low for _, v in spread], [v.high for _, v in spread], color="#202124", lw=0.9)
        for y, v in found:
            text = v.text or digits(v.median)
            axis.annotate(f"{name} {text}" if several else text, (max(v.median, v.high), y), (3, 0),
                          textcoords="offset points", va="center", size=8, label="_label", annotation_clip=False)  # fmt: skip
    axis.set_yticks(rows, list(panel.rows))
    axis.tick_params(axis="y", length=0)
    edge = 0.7 if len(places) > 1 else 1.2  # a single bar is no thicker than others
    axis.set_ylim(max(places.values()) + edge, -edge)
    axis.set_xlim(0, max(axis.get_xlim()[1], 1.05 * panel.bound.value if panel.bound else 0))
    _finish(axis, panel, "x", panel.quantity)
    if panel.bound:
        axis.axvline(panel.bound.value, color="#202124", lw=0.8, ls="--", label="_bound")
        axis.annotate(panel.bound.text, (panel.bound.value, 1), (0, 1), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="bottom", size=8, label="_bound")  # fmt: skip


def _lines(axis, panel):
    for i, (name, points) in enumerate(panel.series.items()):
        xs, medians = [x for x, _ in points], [v.median for _, v in points]
        axis.plot(xs, medians, marker="o" if panel.points else None, ms=3, lw=1.3, color=colour(name, i), label=name)
        if panel.points:
            axis.vlines(xs, [v.low for _, v in points], [v.high for _, v in points], color=colour(name, i), lw=0.8)
        axis.annotate(name, (xs[-1], medians[-1]), (5, 0), textcoords="offset points", va="center", size=8,
                      color=colour(name, i), label="_label", annotation_clip=False)  # fmt: skip
    for shade in panel.shades:
        # Not a patch: rules.py takes a panel with patches for one of bars.
        axis.fill_between([shade.begin, shade.end], 0, 1, transform=axis.get_xaxis_transform(), color="#e8eaed", lw=0, label="_shade", zorder=0)
        axis.annotate(shade.text, ((shade.begin + shade.end) / 2, 1), (0, -2), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="top", size=8, color="#5f6368", label="_shade")  # fmt: skip
    if panel.log_x:
        axis.set_xscale("log", base=2)
        axis.minorticks_off()
    if panel.ticks:
        axis.set_xticks([x for x, _ in panel.ticks], [text for _, text in panel.ticks])
    elif panel.x.unit == NUMBER:
        _integer_ticks(axis.xaxis, panel)
    axis.set_xlabel(panel.x.label)
    most = max(v.high for points in panel.series.values() for _, v in points)
    most = max(most, panel.bound.value if panel.bound else 0)
    already = axis.get_ylim()[1] if axis.get_shared_y_axes().get_siblings(axis)[1:] and not axis.get_autoscaley_on() else 0
    axis.set_ylim(0, max(1.08 * most, already))  # panels with the same scale: the largest of all
    _finish(axis, panel, "y", panel.y)
    if panel.bound:
        axis.axhline(panel.bound.value, color="#202124", lw=0.8, ls="--", label="_bound")
        axis.annotate(panel.bound.text, (0, panel.bound.value), (3, 2), xycoords=("axes fraction", "data"),
                      textcoords="offset points", va="bottom", size=8, label="_bound")  # fmt: skip


def log_ticks(xs, text):
    """(x, text) of the ticks at measured values. A tick that would overlap the previous one is left out."""
    xs = sorted(xs)
    span = math.log2(xs[-1] / xs[0]) if xs[0] else 0
    kept = []
    for x in xs:
        if not kept or math.log2(x / kept[-1]) >= span / 5:
            kept.append(x)
    return tuple((x, text(x)) for x in kept)


def _integer_ticks(axis, panel):
    """Few measured places get a tick each; many, ticks at integers."""
    from matplotlib import ticker

    xs = sorted({x for points in panel.series.values() for x, _ in points})
    if len(xs) <= 9:
        axis.set_ticks(xs)
    else:
        axis.set_major_locator(ticker.MaxNLocator(integer=True))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if value == int(value) else f"{value:g}"))


def _finish(axis, panel, which, quantity):
    from matplotlib import ticker

    getattr(axis, f"set_{which}label")(quantity.label)
    axis.set_title(panel.title, loc="left", size=9, pad=14 if panel.bound and isinstance(panel, Bars) else 5)
    axis.grid(axis=which)
    values = axis.xaxis if which == "x" else axis.yaxis
    values.set_major_locator(ticker.MaxNLocator(6, integer=quantity.unit == NUMBER, steps=[1, 2, 5, 10]))
    values.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))


def colour(name, index):
    return COLOURS.get(name, PALETTE[index % len(PALETTE)])


def _place_labels(axis):
    """Room for the labels of bars; labels of lines move apart."""
    labels = [t for t in axis.texts if t.get_label() == "_label"]
    for text in labels:
        text.set_in_layout(not axis.patches)
    if axis.patches:
        _make_room(axis, labels)
    else:
        _move_apart(axis, labels)


def _make_room(axis, labels):
    renderer = axis.figure.canvas.get_renderer()
    width = axis.get_window_extent(renderer).width
    most = axis.get_xlim()[1]
    for text in labels:
        needed = text.get_window_extent(renderer).width + 12
        most = max(most, text.xy[0] * width / max(width - needed, width / 4))
    axis.set_xlim(0, most)


def _move_apart(axis, labels):
    figure = axis.figure
    renderer = figure.canvas.get_renderer()
    labels = sorted(labels, key=lambda t: t.xy[1])
    points = 72 / figure.dpi
    floor = -math.inf
    for text in labels:
        box = text.get_window_extent(renderer)
        middle = max((box.y0 + box.y1) / 2, floor)
        text.xyann = (text.xyann[0], text.xyann[1] + (middle - (box.y0 + box.y1) / 2) * points)
        floor = middle + box.height * 1.05


def save(figure, path):
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context(SETTINGS):
        figure.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    with open(path, "w") as f:
        shorter = re.sub(r"(\d\.\d\d)\d+", r"\1", text.getvalue())  # a hundredth of a point is enough
        f.write(re.sub(r' transform="rotate\(-0 [^"]*"| +$', "", shorter, flags=re.MULTILINE))
