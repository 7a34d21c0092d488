"""The report of a simulation of placement. Records are those of controlplane/internal/placement/simulate, one for each step."""

import dataclasses

from report import pages, style
from report.pages import Page, Plot, table

NAME = "placement"
MOVES_AIM, LOAD_AIM = 1.25, 1.25  # of a step that changes the cluster


@dataclasses.dataclass(frozen=True)
class Aim:
    what: str
    figure: float
    limit: float
    unit: str = "×"
    at_least: bool = False

    @property
    def met(self):
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def row(self):
        sign, unit = "≥" if self.at_least else "≤", f" {self.unit}" if self.unit else ""
        return [self.what, f"{self.figure:.4g}{unit}", f"{sign} {self.limit:g}{unit}", "met" if self.met else "**missed**"]


def moves(r):
    return (r["pathMoves"] + r["ownerMoves"]) / (r["pathFairShare"] + r["ownerFairShare"])


def is_step(r):
    return "step" in r and not r.get("clusters")


def aims(records):
    found = []
    for i, r in enumerate(records):
        if not is_step(r):
            found.append(Aim("small clusters: switches to owners over the optimum, mean", r["meanRatio"], 1.3))
        elif i == 0:
            found += [
                Aim("first plan, one core", r["seconds"], 5, "s"),
                Aim("greatest load over the mean, first plan", r["ownerMaxOverMean"], 1.1),
                Aim("targets with redundant paths, of those that can have them", r["redundantPermille"], 1000, "‰", True),
                Aim("switches to owners over switches to the nearest gateways", r["ownerHops"] / r["nearestHops"], 1.1),
            ]
        elif i == 1:
            found += [
                Aim("plan when nothing changes, one core", r["seconds"], 3, "s"),
                Aim("moves when nothing changes", r["pathMoves"] + r["ownerMoves"], 0, ""),
            ]
        else:
            found += [
                Aim(f"{r['step']}: moves over the fair share", moves(r), MOVES_AIM),
                Aim(f"{r['step']}: greatest load over the mean", r["ownerMaxOverMean"], LOAD_AIM),
            ]
    return found


def head(first, found):
    s = first["size"]
    met = sum(a.met for a in found)
    return (
        f"# Placement: {met} of {len(found)} aims met\n\n{s['gateways']} gateways in {s['racks']} racks,"
        f" {2 * (s['racks'] + s['spines'])} switches on two fabrics, {s['targets']} targets,"
        f" {s['targets'] * s['volumesPerTarget']} volumes, {s['hosts']} hosts; seed {first['seed']}."
        "\n\n" + table(["aim", "figure", "limit", ""], [a.row() for a in found])
    )


def steps(records):
    rows = [
        [r["step"], str(r["plans"]), f"{r['seconds']:.2f}", f"{r['pathMoves']} ({r['pathFairShare']})",
         f"{r['ownerMoves']} ({r['ownerFairShare']})", str(r["forced"]), str(r["rebalancing"]), f"{r['ownerMaxOverMean']:.3f}",
         f"{r['ownerMinOverMean']:.3f}", f"{r['pathMaxOverMean']:.3f}", str(r["problems"])]
        for r in records if is_step(r)
    ]  # fmt: skip
    columns = ["step", "plans", "s/plan", "path moves (share)", "owner moves (share)", "forced", "rebalancing", "load max/mean",
               "load min/mean", "path load max/mean", "problems"]  # fmt: skip
    return (
        "## Steps\n\nEach step plans and applies until nothing moves. Seconds are the mean of its plans. A move is a present path or owner"
        " that changes. The fair share is 1 % of all. Loads count owned volumes, relative to weight.\n\n" + table(columns, rows)
    )


def switches(records):
    first = records[0]
    text = (
        f"Switches between a host and the owner of a volume that it uses, first plan: {first['ownerHops']:.3f} on average. Owners at"
        f" random: {first['randomHops']:.3f}. The nearest gateways, however loaded: {first['nearestHops']:.3f}."
    )
    for r in records:
        if not is_step(r):
            text += (
                f"\n\n{r['clusters']} small clusters, for which all owners were tried: the plan's sum of switches is {r['meanRatio']:.3f}"
                f" times the least sum that has no greater maximum load, and {r['worstRatio']:.3f} times in the worst cluster."
            )
    return text


def _single(values):
    return tuple(style.Value(v, v, v) for v in values)


def moves_figure(records):
    changing = [r for r in records if is_step(r)][2:]
    panels = [
        style.Bars("Moves", style.Quantity("moves over the fair share", "×"), tuple(r["step"] for r in changing),
                   {"moves": _single(moves(r) for r in changing)}, style.Bound(MOVES_AIM, f"aim ≤ {MOVES_AIM:g}")),
        style.Bars("Balance", style.Quantity("greatest load over the mean", "×"), tuple(r["step"] for r in changing),
                   {"load": _single(r["ownerMaxOverMean"] for r in changing)}, style.Bound(LOAD_AIM, f"aim ≤ {LOAD_AIM:g}")),
    ]  # fmt: skip
    return style.draw("How much moves when 1 % of the gateways change, and how even the load is afterwards", panels, shared=False)


def switches_figure(records):
    r = records[0]
    rows = ("owners at random", "owners as planned", "the nearest gateways, however loaded")
    values = _single((r["randomHops"], r["ownerHops"], r["nearestHops"]))
    panel = style.Bars("", style.Quantity("switches between a host and an owner, mean", style.NUMBER), rows, {"switches": values})
    return style.draw("Planned owners are as near to their hosts as the load allows", [panel])


def page(records, name=NAME):
    facts = {}
    for r in records:
        facts |= r.get("facts", {})
    records = [r for r in records if "step" in r]
    machine = pages.facts_table(facts)
    return Page(name, (
        head(records[0], aims(records)),
        Plot("moves", "Moves and greatest load of each step, beside their aims", lambda: moves_figure(records)),
        steps(records),
        Plot("switches", "Mean number of switches between a host and an owner", lambda: switches_figure(records)),
        switches(records),
        "## Run\n\n" + machine if machine else "",
    ))  # fmt: skip
