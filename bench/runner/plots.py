"""Plots of a run, as SVG and PNG. Needs matplotlib (Debian: python3-matplotlib)."""

import importlib.util
import os

from runner.report import ORDER

COLOURS = {"bare": "#9aa0a6", "bare-pread": "#c8ccd0", "sluice": "#1a73e8", "tgt": "#e8710a",
           "direct": "#188038", "forwarded": "#81c995", "librbd": "#a142f4",
           "rbd": "#d7aefb"}  # fmt: skip
PLOTS = {
    "cpu": [("cpu_us", "target CPU, µs per command")],
    "iops": [("iops", "IOPS")],
    "throughput": [("mb_per_s", "MB/s")],
    "latency": [("p50_us", "p50, µs"), ("p99_us", "p99, µs"), ("p999_us", "p99.9, µs")],
}


def possible():
    return importlib.util.find_spec("matplotlib") is not None


def draw(summaries, directory):
    """Writes all plots; returns their paths. Empty if matplotlib is missing."""
    if not possible():
        return []
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sluice"
    from matplotlib import pyplot

    paths = []
    for name, panels in PLOTS.items():
        figure = _figure(pyplot, summaries, panels)
        for suffix in ("svg", "png"):
            path = os.path.join(directory, f"{name}.{suffix}")
            figure.savefig(path, dpi=110, bbox_inches="tight")
            paths.append(path)
        pyplot.close(figure)
    return paths


def _figure(pyplot, summaries, panels):
    cells = list(summaries)
    names = [n for n in ORDER if any(n in t for t in summaries.values())]
    height = max(2.5, 0.16 * len(cells) * (len(names) + 1) + 1)
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4 + 5 * len(panels), height), squeeze=False, sharey=True
    )
    for axis, (metric, label) in zip(axes[0], panels):
        _bars(axis, summaries, cells, names, metric)
        axis.set_xlabel(label + " (logarithmic)")
    axes[0][0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(names), frameon=False)
    return figure


def _bars(axis, summaries, cells, names, metric):
    thickness = 0.8 / len(names)
    for i, name in enumerate(names):
        rows = [row for row, cell in enumerate(cells) if name in summaries[cell]]
        figures = [summaries[cells[row]][name].figures[metric] for row in rows]
        medians = [f.median for f in figures]
        error = [[f.median - f.low for f in figures], [f.high - f.median for f in figures]]
        axis.barh([row + i * thickness for row in rows], medians, thickness, xerr=error,
                  color=COLOURS[name], label=name, error_kw={"lw": 0.6})  # fmt: skip
    axis.set_yticks([row + 0.4 - thickness / 2 for row in range(len(cells))])
    axis.set_yticklabels([cell.name for cell in cells], fontsize=8)
    axis.invert_yaxis()
    axis.margins(y=0.01)
    axis.set_xscale("log")
    axis.grid(axis="x", lw=0.3)
