"""The same load on local storage, and through targets that serve it: what share arrives."""

import dataclasses

from experiments.frame import load, storage, subjects
from experiments.frame.stopping import CannotRun
from runner import measure

CPU = "target_cpu_s_per_command"
STORAGE_LIMITS = 0.5  # of a core is what the target may need to carry the local rate


def stores(options):
    """RAM, disk and block device; the run reports what it cannot make."""
    size = options.choose(64 << 20, 128 << 20, 1 << 30)
    found = [
        subjects.Store("null", "null"),
        subjects.Store("ram", "memory", options.ram_file(size), size),
        subjects.Store("file", "file", storage.disk_file(options, "direct.img", size), size, True),
    ]
    try:
        device = storage.loop_device(options, storage.disk_file(options, "loop.img", size))
        found.append(subjects.Store("block", "block", device, size, True))
    except CannotRun as e:
        options.emit({"skipped": f"block device: {e}"})
    return found, size


def cells(options, found):
    shapes = [(131072, 16, True), (4096, 32, False)]
    return [
        [load.Load(store.name, op, size, depth, sequential=sequential) for op in ("read", "write")]
        for store in found
        for size, depth, sequential in options.choose(shapes[:1], shapes, shapes)
    ]


def parameters(one):
    order = "sequential" if one.sequential else "random"
    return {"store": one.store, "op": one.op, "size": one.size, "pattern": order,
            "depth": one.depth}  # fmt: skip


def relate(options, group):
    """Of each round: what share of the local rate arrives; of the null store, of the limit's."""
    for one in group:
        reference = "bare" if one.store == "null" else "local"
        base = options.series(reference, parameters(one))
        for name in options.measured.subjects():
            ours = options.series(name, parameters(one))
            if not base or not ours or name == reference:
                continue
            for r in ours.by_round.keys() & base.by_round.keys():
                share = ours.by_round[r]["iops"] / base.by_round[r]["iops"]
                options.figures(name, parameters(one), r, {"share_of_local_ratio": share})


def judge(options, groups):
    """The study's disk kept 99 % of its rate, its null device 94 %. A share says something of the
    target only where the storage is what limits, and where neighbours took no part in it."""
    for one in (one for group in groups for one in group):
        ours, local = (options.series(name, parameters(one)) for name in ("sluice", "local"))
        if not ours or not local:
            continue
        if len(ours.calm()) < 2 or len(local.calm()) < 2:
            options.emit({"skipped": f"the aim, {one.name}: fewer than two rounds were quiet"})
        elif local.figure("iops").median * ours.figure(CPU).median > STORAGE_LIMITS:
            options.emit({"skipped": f"the aim, {one.name}: the storage isn't what limits"})
        else:
            share = ours.figure("share_of_local_ratio").median
            options.aim(f"share of the local rate, {one.name}", share, ">= 0.94")


def fill_memory(setup, kinds):
    """Memory without data would be one page of zeros."""
    once = dataclasses.replace(setup, warmup=0, window=0.05)
    for kind in kinds:
        if kind.name == "sluice":
            measure.measure(once, kind, load.Load("ram", "read", 131072, 16), measure.FILL)


def run(options):
    found, size = stores(options)
    setup = options.setup(window=options.choose(0.15, 0.3, 1.0), file_size=size, span=size)
    wanted = (subjects.Bare, subjects.Local, subjects.Sluice, subjects.Tgt)
    kinds = [target for kind in wanted if options.start(target := kind(setup, found))]
    fill_memory(setup, kinds)
    groups = cells(options, found)
    for group in groups:
        options.alternate(group, kinds, parameters)
        relate(options, group)
        for one in group:
            shown = [(k.name, options.series(k.name, parameters(one))) for k in kinds]
            text = ", ".join(
                f"{n} {s.figure('bytes_per_second').median / 1e6:.0f} MB/s"
                f" {s.figure(CPU).median * 1e6:.1f} µs" for n, s in shown if s
            )  # fmt: skip
            print(f"  {one.name}: {text}", flush=True)
    judge(options, groups)
