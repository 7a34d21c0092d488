"""Reading what experiments wrote: JSON lines as bench/experiments/README.md has them."""

import dataclasses
import json

from runner import stats


class LineError(Exception):
    pass


NEEDED = {"experiment", "subject", "parameters", "round", "figures"}


def parse(text, where="line"):
    """One line's object; LineError names what is wrong with it."""
    try:
        line = json.loads(text)
    except ValueError as e:
        raise LineError(f"{where}: no JSON: {e}") from None
    if not isinstance(line, dict):
        raise LineError(f"{where}: an object was expected")
    if "facts" in line or "aim" in line or "skipped" in line:
        return line
    lacking = NEEDED - line.keys()
    if lacking:
        raise LineError(f"{where}: lacks {', '.join(sorted(lacking))}")
    for key, value in line["figures"].items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise LineError(f"{where}: the figure {key} is no number: {value!r}")
    return line


def read(path):
    with open(path) as f:
        return [
            parse(text, f"{path}:{number}") for number, text in enumerate(f, 1) if text.strip()
        ]


def key(parameters):
    """Parameters as something that compares."""
    return tuple(sorted((name, _plain(value)) for name, value in parameters.items()))


def _plain(value):
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value


@dataclasses.dataclass
class Series:
    """All rounds of one subject under one set of parameters."""

    parameters: dict
    by_round: dict = dataclasses.field(default_factory=dict)  # {round: figures}
    session: dict | None = None
    notes: list = dataclasses.field(default_factory=list)

    def names(self):
        found = {}
        for figures in self.by_round.values():
            found |= dict.fromkeys(figures)
        return list(found)

    def calm(self):
        """The rounds without noise."""
        return {r for r, f in self.by_round.items() if f.get("noise_share", 0.0) <= stats.QUIET}

    def quiet(self):
        """The rounds that count: those without noise if there are at least two of them."""
        calm = self.calm()
        return calm if len(calm) >= 2 else set(self.by_round)

    def figure(self, name):
        """Its median, lowest and highest; None where it was not measured."""
        values = [
            self.by_round[r][name] for r in sorted(self.quiet()) if name in self.by_round[r]
        ]
        return stats.figure(values) if values else None


@dataclasses.dataclass
class Experiment:
    name: str
    facts: dict = dataclasses.field(default_factory=dict)
    aims: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)  # what was not measured, and why
    cells: dict = dataclasses.field(default_factory=dict)  # {key: {subject: Series}}

    def add(self, line):
        if "facts" in line:
            self.facts |= line["facts"]
        elif "aim" in line:
            self.aims.append(line)
        elif "skipped" in line:
            if line["skipped"] not in self.skipped:
                self.skipped.append(line["skipped"])
        else:
            self._add_measurement(line)

    def _add_measurement(self, line):
        subjects = self.cells.setdefault(key(line["parameters"]), {})
        series = subjects.setdefault(line["subject"], Series(line["parameters"]))
        series.by_round.setdefault(line["round"], {}).update(line["figures"])
        series.session = line.get("session") or series.session
        note = line.get("notes")
        if note and note not in series.notes:
            series.notes.append(note)

    def subjects(self):
        found = {}
        for cell in self.cells.values():
            found |= dict.fromkeys(cell)
        return list(found)

    def constant(self):
        """The parameters that are the same in all of several cells."""
        every = [next(iter(cell.values())).parameters for cell in self.cells.values()]
        if len(every) < 2:
            return {}
        shared = set.intersection(*(set(key(p)) for p in every))
        return {n: value for n, value in every[0].items() if (n, _plain(value)) in shared}

    def figures(self):
        found = {}
        for cell in self.cells.values():
            for series in cell.values():
                found |= dict.fromkeys(series.names())
        return list(found)


def by_experiment(lines):
    """(facts of the machine, {name: Experiment}) in order of first appearance."""
    machine, experiments = {}, {}
    for line in lines:
        if "experiment" not in line:
            machine |= line.get("facts", {})
            continue
        name = line["experiment"]
        experiments.setdefault(name, Experiment(name)).add(line)
    return machine, experiments


def ratio(ours, reference, name):
    """The rounds' own ratios of a figure as their median, lowest and highest: what a round's
    subjects share of the machine's drift cancels. None where there is nothing to compare."""
    if ours is None or reference is None:
        return None
    common = ours.by_round.keys() & reference.by_round.keys()
    calm = common & ours.quiet() & reference.quiet()
    used = calm if len(calm) >= 2 else common
    ratios = [
        ours.by_round[r][name] / reference.by_round[r][name]
        for r in sorted(used)
        if name in ours.by_round[r] and reference.by_round[r].get(name)
    ]
    return stats.figure(ratios) if ratios else None
