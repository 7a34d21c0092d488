"""Null, file and block LUNs: raw, mixed, and through a file system at the initiator."""

import importlib.util
import os

from experiments.frame import load, storage, subjects
from experiments.frame.stopping import CannotRun

MEGABYTE = 1e6
RAW_SIZE, RAW_DEPTH = 512 << 10, 4  # the study's dd: bs=512K
MIXED_SIZE, MIXED_DEPTH, MIXED_WRITES = 8192, 16, 33  # %
PEERS = ("sluice", "tgt", "istgt")


def beside(name):
    """A module of this folder, whose name is no Python name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"backing_stores_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Durable(subjects.Sluice):
    """A write is acknowledged once it is durable: the gateway's default, which no peer has."""

    name = "sluice-durable"

    def takes(self, store):
        return store.kind != "null"

    def measures(self, one):
        return super().measures(one) and one.op != "read"


def make_stores(options, purpose, size):
    """One of each kind. A target has files of its own where another must not have them open."""
    names = [f"{purpose}-{kind}.img" for kind in ("buffered", "direct", "loop")]
    buffered, direct, loop = (storage.disk_file(options, name, size) for name in names)
    cached = purpose != "durable"
    found = [
        subjects.Store("null", "null", size=size),
        subjects.Store("file-buffered", "file", buffered, size, write_cache=cached),
        subjects.Store("file-direct", "file", direct, size, True, write_cache=cached),
    ]
    try:
        device = storage.loop_device(options, loop)
        found.append(subjects.Store("block", "block", device, size, True, write_cache=cached))
    except CannotRun as e:
        options.emit({"skipped": f"block device: {e}"})
    return found


def parameters(one):
    test = "realistic" if one.op == "mix" else "raw"
    return {"test": test, "op": one.op, "store": one.store}


def per_megabyte(_, record):
    return {"target_cpu_s_per_megabyte": record["target_cpu_us"] / record["cell"]["size"]}


def measure_raw(options, kinds, stores):
    for store in stores:
        raw = [load.Load(store.name, op, RAW_SIZE, RAW_DEPTH, sequential=True)
               for op in ("read", "write")]  # fmt: skip
        mixed = load.Load(store.name, "mix", MIXED_SIZE, MIXED_DEPTH, write_percent=MIXED_WRITES)
        options.alternate([*raw, mixed], kinds, parameters, extra=per_megabyte)
        relate(options, parameters(mixed))
        for one in (*raw, mixed):
            tell(options, parameters(one))


def relate(options, place):
    """The study gives the mixed load's time; ours are rates, whose inverse compares."""
    found = {n: s for n in PEERS if (s := options.series(n, place))}
    for r in set.intersection(*(set(s.by_round) for s in found.values())) if found else ():
        best = max(s.by_round[r]["iops"] for s in found.values())
        for name, series in found.items():
            ratio = best / series.by_round[r]["iops"]
            options.figures(name, place, r, {"elapsed_ratio_to_best": ratio})


def tell(options, place):
    text = []
    for name in options.measured.subjects():
        series = options.series(name, place)
        if series:
            rate = series.figure("bytes_per_second").median / MEGABYTE
            cost = series.figure("target_cpu_s_per_megabyte").median * 1e6
            text.append(f"{name} {rate:,.0f} MB/s {cost:.1f} µs/MB")
    print(f"  {' '.join(place.values())}: {', '.join(text)}", flush=True)


def judge(options, stores):
    """Where the device isn't the limit, no LUN of ours may cost more than a peer's."""
    for store in stores:
        for test, op in (("raw", "read"), ("raw", "write"), ("realistic", "mix")):
            place = {"test": test, "op": op, "store": store.name}
            # istgt has the device behind the page cache, and does less there than the others.
            for peer in ("tgt",) if store.name == "block" else ("tgt", "istgt"):
                times = options.ratio("sluice", peer, place, "target_cpu_s_per_megabyte")
                if times:
                    text = f"{test} {op}, {store.name}: CPU per megabyte beside {peer}"
                    options.aim(text, times, "<= 1.0")


def run(options):
    size = options.choose(64 << 20, 128 << 20, 1 << 30)
    stores = make_stores(options, "common", size)
    setup = options.setup(window=options.choose(0.15, 0.25, 1.0), span=size)
    kinds = [subjects.Bare(setup, stores), subjects.Sluice(setup, stores),
             Durable(setup, make_stores(options, "durable", size)),
             subjects.Tgt(setup, stores), subjects.Istgt(setup, stores)]  # fmt: skip
    for kind in kinds:
        kind.every = 1
    kinds = [k for k in kinds if options.start(k)]
    measure_raw(options, kinds, stores)
    served = [k for k in kinds if k.name in PEERS]
    try:
        file_system = beside("file_system")
        file_system.measure(options, served, stores)
        for store in stores:
            for op in ("write", "read"):
                place = {"test": "file system", "op": op, "store": store.name}
                if options.series("sluice", place):
                    tell(options, place)
    except CannotRun as e:
        options.emit({"skipped": f"through a file system: {e}"})
        print(f"  ! through a file system: {e}", flush=True)
    judge(options, stores)
