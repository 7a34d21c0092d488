"""What the guest and the host's side noted, as records of an experiment."""

import glob
import json
import re
import statistics

NAME = "two-lines"
STORES = {0: "null", 1: "file"}
# Ethernet's share for TCP payload: 1448 of 1514 bytes of a full frame, which is what tc counts.
PAYLOAD = 1448 / 1514
BOUND = 1.95


def cpu_seconds(pid):
    """Of all threads of a process: time on a CPU, proc(5) schedstat."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total / 1e9


def record(entry, fio, session, rate):
    """One measurement. `entry` is a line of `measured`, `fio` fio's report, `rate` a line's bits per second."""
    operation = entry["operation"].removesuffix("-single")
    done = fio["jobs"][0][operation]
    if fio["jobs"][0]["error"] or not done["total_ios"]:
        raise ValueError(f"fio's run {entry['number']} failed: error {fio['jobs'][0]['error']}, {done['total_ios']} operations")
    figures = {
        "bytes_per_second": done["bw_bytes"],
        "iops": done["iops"],
        "latency_mean_s": done["lat_ns"]["mean"] / 1e9,
        "target_cpu_s_per_command": entry["cpu_seconds"] / done["total_ios"],
        "retransmitted_segments": entry["retransmitted"],
        "lines_share": done["bw_bytes"] / (entry["lines"] * rate / 8 * PAYLOAD),
    }
    parameters = {"op": operation, "size": 512 << 10, "depth": 1 if operation != entry["operation"] else 8,
                  "lines": entry["lines"], "store": STORES[entry["lun"]], "line_bits_per_second": rate}  # fmt: skip
    return {"experiment": NAME, "subject": "sluice", "parameters": parameters, "round": entry["round"], "figures": figures,
            "session": session}  # fmt: skip


def session_keys(text):
    """What open-iscsi says was negotiated (`iscsiadm -m session -P 2`), of the first session."""
    wanted = "HeaderDigest|DataDigest|MaxRecvDataSegmentLength|MaxXmitDataSegmentLength|FirstBurstLength|MaxBurstLength|ImmediateData|InitialR2T|MaxOutstandingR2T"  # noqa: E501
    keys = {}
    for key, value in re.findall(rf"^\s*({wanted}): (\S+)\s*$", text, re.M):
        keys.setdefault(key, value)
    return keys


def ratios(records, store, operation, depth):
    """Two lines over one, of each round."""
    rate = {}
    for r in records:
        p = r["parameters"]
        if (p["store"], p["op"], p["depth"]) == (store, operation, depth):
            rate[r["round"], p["lines"]] = r["figures"]["bytes_per_second"]
    rounds = sorted({n for n, _ in rate})
    return [rate[n, 2] / rate[n, 1] for n in rounds if (n, 1) in rate and (n, 2) in rate]


def aims(records):
    """Of queued commands. One at a time is on one line at a time: its ratio is among the records, and nothing to be held to."""
    found = []
    kinds = sorted({(p["store"], p["op"], p["depth"]) for p in (r["parameters"] for r in records)})
    for store, operation, depth in kinds:
        all_rounds = ratios(records, store, operation, depth)
        if not all_rounds or depth == 1:
            continue
        value = statistics.median(all_rounds)
        text = f"two lines over one by round robin, {operation}s of 512 KiB, {depth} in flight, {store} "
        text += f"({min(all_rounds):.3f} to {max(all_rounds):.3f})"
        found.append({"experiment": NAME, "aim": text, "value": value, "bound": f">= {BOUND}", "kept": value >= BOUND})
    return found
