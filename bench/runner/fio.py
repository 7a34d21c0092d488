"""fio as its own client and target: what librbd, or a local file, costs with nothing around it."""

import json
import os
import subprocess
import tempfile
import time

from runner import measure, processes
from runner.sampling import Sample

PATIENCE = 30.0  # seconds
BEGUN, ANSWER = "begun", "answer.json"


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *(int(word) for word in f.read().split())]


def _command(setup, target, cell, window, folder):
    """In `folder` it leaves BEGUN when it begins and its ANSWER when it has ended."""
    mode = ("" if cell.sequential else "rand") + cell.op
    return [
        "env", "-C", folder, "fio", *target.fio_job(cell), f"--rw={mode}", f"--bs={cell.size}",
        f"--iodepth={cell.depth}", "--norandommap", "--time_based",
        f"--ramp_time={round(setup.warmup * 1000)}ms",
        f"--runtime={round(window * 1000)}ms", f"--exec_prerun=touch {BEGUN}",
        "--output-format=json", f"--output={ANSWER}",
    ]  # fmt: skip


def _wait_for(path, child):
    end = time.monotonic() + PATIENCE
    while not os.path.exists(path):
        if child.poll() is not None or time.monotonic() > end:
            raise measure.MeasureError("fio doesn't begin")
        time.sleep(0.005)


def run(setup, target, cell):
    """A record as iscsi-load makes it, of the job that the target's `fio_job(cell)` says. CPU time
    and I/O are both taken as rates of one steady state: fio counts its I/O itself, its threads'
    time is sampled within the same window."""
    window = setup.window * target.windows
    with tempfile.TemporaryDirectory() as folder:
        child = processes.spawn(
            _command(setup, target, cell, window, folder), setup.target_core, setup.nice,
            setup.realtime, stderr=subprocess.PIPE, environment=target.fio_environment(),
        )  # fmt: skip
        try:
            _wait_for(os.path.join(folder, BEGUN), child)
            time.sleep(setup.warmup)
            pids = _children(child.pid)
            first = Sample(pids, setup.target_core)
            time.sleep(window * 0.9)
            use = Sample(pids, setup.target_core).since(first)
            _, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise measure.MeasureError("fio doesn't end") from None
        finally:
            processes.stop(child, patience=0)
        if child.returncode != 0:
            raise measure.MeasureError(err.decode(errors="replace").strip() or "fio failed")
        with open(os.path.join(folder, ANSWER)) as f:
            text = f.read()
        return _record(json.loads(text[text.index("{"):]), cell, use, setup)


def _record(answer, cell, use, setup):
    done = answer["jobs"][0][cell.op]
    run_share, wait_share, slices, busy, soft, steal = use
    latency = done["clat_ns"]
    at = {name: latency["percentile"][name] for name in ("50.000000", "99.000000", "99.900000")}
    return {
        "program": "fio",
        "seconds": done["runtime"] / 1000,
        "commands": done["total_ios"],
        "iops": done["iops"],
        "mb_per_s": done["bw_bytes"] / 1e6,
        "latency_us": {
            "mean": latency["mean"] / 1000,
            "p50": at["50.000000"] / 1000,
            "p99": at["99.000000"] / 1000,
            "p999": at["99.900000"] / 1000,
            "max": latency["max"] / 1000,
        },
        "target_cpu_us": run_share * 1e6 / done["iops"],
        "target_cpu": run_share,
        "target_cpu_stat": run_share,
        "target_wait": wait_share,
        "target_slices": slices,
        "core_busy": busy,
        "core_softirq": soft,
        "core_steal": steal,
        # It is its own client, and no network lies between.
        "client_busy": 0.0,
        "client_cpu": 0.0,
        "client_wait": 0.0,
        "commands_per_receive": 0.0,
        "congestion": setup.congestion,
        "errors": 0,
    }
