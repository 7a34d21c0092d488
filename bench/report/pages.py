"""A report as a page of Markdown with its plots."""

import dataclasses
import os
import sys
import typing

from report import rules, style

DASH = "—"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def yes(kept):
    return "yes" if kept else "**no**"


def facts_table(facts):
    rows = [[key.replace("_", " "), str(value)] for key, value in facts.items() if value != ""]
    return table(["fact", "value"], rows) if rows else ""


@dataclasses.dataclass(frozen=True)
class Plot:
    name: str  # of the file: PAGE-NAME.svg, or PAGE.svg where it is empty
    alt: str  # what a reader sees who does not see the plot
    draw: typing.Callable  # returns the figure


@dataclasses.dataclass(frozen=True)
class Page:
    """Parts are paragraphs or plots; empty ones are left out."""

    name: str
    parts: tuple

    def plots(self):
        return [p for p in self.parts if isinstance(p, Plot)]

    def file(self, plot):
        return f"{self.name}-{plot.name}.svg" if plot.name else f"{self.name}.svg"

    def markdown(self, with_plots=True):
        parts = [
            (f"![{p.alt}]({self.file(p)})" if with_plots else "") if isinstance(p, Plot) else p
            for p in self.parts
        ]
        return "\n\n".join(p.strip("\n") for p in parts if p) + "\n"

    def write(self, directory):
        """NAME.md and its plots; the paths. Without matplotlib the page has no plots. A plot that breaks a rule is written
        as well: a long measurement is worth more than its plot."""
        os.makedirs(directory, exist_ok=True)
        paths = [os.path.join(directory, f"{self.name}.md")]
        drawn = style.possible()
        if not drawn and self.plots():
            print("no plots: matplotlib is missing (apt-get install python3-matplotlib)", file=sys.stderr)
        with open(paths[0], "w") as f:
            f.write(self.markdown(drawn))
        for plot in self.plots() if drawn else []:
            path = os.path.join(directory, self.file(plot))
            figure = plot.draw()
            style.save(figure, path)
            paths.append(path)
            for problem in rules.problems(figure) + rules.problems_of_file(path):
                print(f"{self.file(plot)}: {problem}", file=sys.stderr)
        return paths
