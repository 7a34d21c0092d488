"""Figures in words: what a name means, and a value in a unit that people read."""

from report import style

LABELS = {
    "iops": "IOPS",
    "bytes_per_second": "throughput",
    "target_cpu_s_per_command": "target CPU per command",
    "target_cpu_s_per_megabyte": "target CPU per megabyte",
    "target_cpu_share": "target CPU (1 core = 100 %)",
    "latency_mean_s": "mean",
    "latency_p50_s": "p50",
    "latency_p99_s": "p99",
    "latency_p999_s": "p99.9",
    "client_busy_share": "client busy",
    "noise_share": "noise",
    "one_core_iops": "commands that one core serves",
    "share_of_local_ratio": "share of the local rate",
    "cpu_ratio_to_standalone": "CPU over a standalone gateway's",
    "used_ports_share": "share of the used ports",
}


def label(figure):
    return LABELS.get(figure, figure.replace("_", " "))


def digits(value):
    """Three of them count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _scaled(value, steps):
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{digits(value / factor)} {unit}"
    factor, unit = steps[-1]
    return f"{digits(value / factor)} {unit}"


SECONDS = ((1, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def text(figure, value):
    """A value with its unit, which the figure's name tells (SI: see bench/experiments)."""
    if figure.endswith("_share"):
        return f"{value:.0%}"
    if "ratio" in figure:
        return f"{value:.2f}×"
    if figure.endswith("bytes_per_second"):
        return f"{digits(value / 1e6)} MB/s"
    if "_s_per_" in figure:
        return f"{digits(value * 1e6)} µs"
    if figure.endswith(("_s", "_seconds")):
        return _scaled(value, SECONDS)
    if "bytes" in figure:
        return _scaled(value, BYTES)
    return digits(value) if value != int(value) or abs(value) >= 100 else f"{value:.0f}"


def quantity(figure):
    """What a plot's axis shows, and what values are multiplied with to be in its unit."""
    name = label(figure)
    if "_s_per_" in figure:
        return style.Quantity(name, "µs"), 1e6
    if figure.endswith("bytes_per_second"):
        return style.Quantity(name, "MB/s"), 1e-6
    if figure.endswith("_share"):
        return style.Quantity(name.removesuffix(" (1 core = 100 %)"), "%"), 100
    if "ratio" in figure:
        return style.Quantity(name.removesuffix(" ratio"), "×"), 1
    if figure.endswith("_s"):
        return style.Quantity(name, "µs"), 1e6
    if figure.endswith("iops"):
        return style.Quantity(name.removesuffix("iops").strip() or "commands", "IOPS"), 1
    if "bytes" in figure:
        return style.Quantity(name.removesuffix(" bytes"), "MiB"), 1 / (1 << 20)
    return style.Quantity(name, style.NUMBER), 1


def size(count):
    """4096 as 4k: sizes are powers of two."""
    for factor, unit in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")):
        if count >= factor and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count} B"


def _word(name):
    return name.replace("_", " ")


def parameters(values, without=()):
    """A cell's parameters as words, in the order the experiment gave them."""
    words = []
    for name, value in values.items():
        if name in without:
            continue
        if name in ("test", "op", "store", "way", "pattern"):
            words.append(str(value))
        elif name == "size" and isinstance(value, int):
            words.append(size(value))
        elif value is True:
            words.append(_word(name))
        elif value is not False:
            words.append(f"{_word(name)} {value}")
    return " ".join(words) or "all"
