"""What an experiment is given: its options, where its lines go, and what is undone at its end."""

import contextlib
import dataclasses
import json
import operator
import os
import shutil
import tempfile

from report import lines
from runner import measure, setup, targets

from experiments.frame import load, subjects
from experiments.frame.stopping import CannotRun

WINDOWS = {"smoke": (0.1, 0.05), "short": (0.4, 0.1), "full": (0.8, 0.2)}  # window, warm-up, s
ROUNDS = {"smoke": 1, "short": 3, "full": 5}
BOUNDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclasses.dataclass
class Options:
    """`mode`: smoke (seconds), short (about a minute) or full. `scratch`: a folder on a disk, which
    goes with the run. What `cleanup` is given happens at the end, whatever the end is."""

    experiment: str
    out: str
    mode: str
    rounds: int
    bin: str
    programs: str
    scratch: str
    target_core: int
    client_core: int
    nice: int
    realtime: bool
    congestion: str
    cleanup: contextlib.ExitStack
    measured: lines.Experiment

    def program(self, name):
        return os.path.join(self.bin, name)

    def choose(self, smoke, short, full):
        """What belongs to the mode."""
        return {"smoke": smoke, "short": short, "full": full}[self.mode]

    def emit(self, line):
        """Appends a line, with the experiment's name."""
        line = {"experiment": self.experiment, **line}
        text = json.dumps(line)
        self.measured.add(lines.parse(text))
        with open(self.out, "a") as f:
            f.write(text + "\n")

    def figures(self, subject, parameters, round_number, figures, session=None, notes=None):
        """One measurement."""
        kept = {name: float(f"{value:.6g}") for name, value in figures.items()}
        line = {"subject": subject, "parameters": parameters, "round": round_number,
                "figures": kept}  # fmt: skip
        before = self.series(subject, parameters)
        if session and (not before or before.session != session):
            line["session"] = session
        if notes:
            line["notes"] = notes
        self.emit(line)

    def aim(self, text, value, bound):
        """`bound`: an operator and a number, such as ">= 1.95"."""
        sign, number = bound.split()
        kept = BOUNDS[sign](value, float(number))
        self.emit({"aim": text, "value": value, "bound": bound, "kept": kept})
        print(f"  {'kept' if kept else 'MISSED'}: {text}: {value:.3g} (aim {bound})", flush=True)

    def series(self, subject, parameters):
        """What was measured of a subject; None if nothing was."""
        return self.measured.cells.get(lines.key(parameters), {}).get(subject)

    def ratio(self, ours, reference, parameters, figure="target_cpu_s_per_command", of=None):
        """The median of the rounds' own ratios of two subjects; `of`: the reference's parameters,
        where they are others."""
        found = lines.ratio(
            self.series(ours, parameters), self.series(reference, of or parameters), figure
        )
        return found.median if found else None

    def setup(self, **changes):
        """What the runner's targets are made with."""
        window, warmup = WINDOWS[self.mode]
        values = {
            "root": setup.ROOT, "results": self.scratch, "programs": self.programs,
            "gateway": self.program("sluice-gateway"), "file": "", "ram_file": "", "file_size": 0,
            "span": 1 << 30, "window": window, "warmup": warmup,
            "target_core": self.target_core, "client_core": self.client_core,
            "nice": self.nice, "realtime": self.realtime, "wait": "poll",
            "congestion": self.congestion,
        }  # fmt: skip
        return setup.Setup(**(values | changes))

    def ram_file(self, size):
        """A file in RAM, every block of it written."""
        setup.remove_stale_files()
        path = f"{setup.SHM}-{os.getpid()}.img"
        self.cleanup.callback(lambda: os.path.exists(path) and os.unlink(path))
        setup.make_file(path, size)
        return path

    def start(self, target):
        """Until the end of the run; False, and a note, if a peer can't run here."""
        why = subjects.missing(target.name)
        self.cleanup.callback(target.stop)
        if not why:
            try:
                target.start()
                return True
            except targets.StartError as e:
                if target.name not in subjects.PROGRAMS:
                    raise
                why = str(e)
        self.emit({"skipped": why})
        print(f"  ! {why}", flush=True)
        return False

    def alternate(self, loads, kinds, parameters_of, rounds=None, extra=None):
        """Measures all loads against all targets by turns. `parameters_of(load)` names the cell in
        the lines, `extra(target, record)` adds figures of its own."""

        def sink(record):
            one = load.Load(**record["cell"])
            if not record["commands"] or not record["target_cpu_us"]:
                self.emit({"skipped": f"a round of {record['target']}, {one.name}: no command ended"})
                return
            figures = load.figures(record)
            if extra:
                figures |= extra(record["target"], record)
            self.figures(
                record["target"], parameters_of(one), record["round"] + 1, figures,
                session=record.get("session"),
            )  # fmt: skip

        notes = []
        measure.alternate(loads, kinds, rounds or self.rounds, sink, notes)
        for note in notes:
            self.emit({"skipped": note})


def make_options(args, congestion, cleanup):
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    os.makedirs(args.scratch, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="sluice-experiment-", dir=args.scratch)
    cleanup.callback(shutil.rmtree, scratch, True)
    return Options(
        experiment=args.name,
        out=args.out,
        mode=args.mode,
        rounds=args.rounds or ROUNDS[args.mode],
        bin=os.path.abspath(args.bin),
        programs=os.path.abspath(args.programs),
        scratch=scratch,
        target_core=args.target_core,
        client_core=args.client_core,
        nice=args.nice,
        realtime=args.realtime,
        congestion=congestion,
        cleanup=cleanup,
        measured=lines.Experiment(args.name),
    )


# What keeps an experiment from being measured, as its own code or the runner's says it.
FAILURES = (CannotRun, targets.StartError, measure.MeasureError)
