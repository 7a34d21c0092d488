"""What the guest and this side of its wire noted, as records of an experiment."""

import json

from report import lines

NAME = "passthrough"
SIZE, DEPTH = 128 << 10, 16
BOUND = 0.93
# The device was the limit where fio got most of what the device is set to, and neither the guest's CPUs nor the core of the
# gateway's only reactor would have been one.
LOCAL, IDLE, CORE = 0.8, 0.3, 0.7


def use_of(before, after):
    """(share of the guest's CPU time that was idle, CPU seconds of the gateway's threads per second)."""
    (began, cpus, threads), (ended, cpus_then, threads_then) = _noted(before), _noted(after)
    spent = [b - a for a, b in zip(cpus, cpus_then)]
    return (spent[3] + spent[4]) / sum(spent), (threads_then - threads) / 1e9 / (ended - began)


def _noted(text):
    uptime, cpus, threads = None, None, 0
    for words in (line.split() for line in text.splitlines()):
        if words[0] == "uptime":
            uptime = float(words[1])
        elif words[0] == "cpu":  # all of them: user nice system idle iowait irq softirq steal
            cpus = [int(word) for word in words[1:9]]
        elif words[0] == "thread":
            threads += int(words[1])
    if uptime is None or cpus is None or not threads:
        raise ValueError(f"no times of the guest and its gateway: {text!r}")
    return uptime, cpus, threads


def done_by_fio(text, operation):
    report = json.loads(text[text.index("{") :])  # a note about exec_prerun comes first
    job = report["jobs"][0]
    done = job[operation]
    if job["error"] or not done["total_ios"]:
        raise ValueError(f"fio failed: error {job['error']}, {done['total_ios']} operations")
    # Its own IOPS leave out what was in flight when the warm-up ended; its bytes don't.
    rate = done["bw_bytes"]
    return {"bytes_per_second": rate, "iops": rate / SIZE, "latency_mean_s": done["lat_ns"]["mean"] / 1e9}


def done_by_load(text):
    """(figures, what was negotiated) of iscsi-load."""
    report = json.loads(text)
    if report["errors"] or not report["commands"]:
        raise ValueError(f"the load failed: {report['errors']} errors, {report['first_error']}")
    return {
        "bytes_per_second": report["mb_per_s"] * 1e6,
        "iops": report["iops"],
        "latency_mean_s": report["latency_us"]["mean"] / 1e6,
    }, report["session"]


def turns(folder, rates):
    """All measurements of a run. `rates`: bytes per second that each kind of device is set to."""
    found = []
    for line in (folder / "turns").read_text().splitlines():
        number, turn, kind, operation, subject = line.split()
        said, before, after, waited = (
            (folder / f"{number}.{end}").read_text() for end in ("json", "before", "after", "waited")
        )
        session = None
        if subject == "local":
            figures = done_by_fio(said, operation)
        else:
            figures, session = done_by_load(said)
        idle, gateway = use_of(before, after)
        nanoseconds, seconds = waited.split()
        figures |= {
            "share_of_device_ratio": figures["bytes_per_second"] / rates[kind],
            "guest_idle_share": idle,
            "host_wait_share": int(nanoseconds) / 1e9 / float(seconds),
        }
        if subject == "sluice":
            figures |= {"target_cpu_share": gateway, "target_cpu_s_per_command": gateway / figures["iops"]}
        parameters = {"store": kind, "op": operation, "size": SIZE, "depth": DEPTH, "pattern": "sequential",
                      "device_bytes_per_second": rates[kind]}  # fmt: skip
        record = {"experiment": NAME, "subject": subject, "parameters": parameters, "round": int(turn), "figures": figures}
        found.append(record | ({"session": session} if session else {}))
    return found


def relate(records):
    """To each measurement of the gateway: its share of the local rate of the same round."""
    local = {(lines.key(r["parameters"]), r["round"]): r["figures"] for r in records if r["subject"] == "local"}
    for r in records:
        base = local.get((lines.key(r["parameters"]), r["round"]))
        if r["subject"] == "sluice" and base:
            r["figures"]["share_of_local_ratio"] = r["figures"]["bytes_per_second"] / base["bytes_per_second"]


def limited_by(local, ours):
    """What else than the device may have been the limit, in words; None if nothing."""
    got = local.figure("share_of_device_ratio").median
    if got < LOCAL:
        return f"the device wasn't the limit, the local load got {got:.0%} of what it is set to"
    for name, series in (("local", local), ("sluice", ours)):
        idle = series.figure("guest_idle_share").median
        if idle < IDLE:
            return f"the device wasn't the limit, {idle:.0%} of the guest's CPU time were idle under {name}"
    core = local.figure("iops").median * ours.figure("target_cpu_s_per_command").median
    if core > CORE:
        return f"the device wasn't the limit, its rate would take the gateway {core:.0%} of a core"
    return None


def judged(records, never=None):
    """Lines: an aim of each kind and operation, or why it isn't judged. `never`: why none is."""
    experiment = lines.Experiment(NAME)
    for r in records:
        experiment.add(r)
    found = []
    for subjects in experiment.cells.values():
        local, ours = subjects.get("local"), subjects.get("sluice")
        if not local or not ours:
            continue
        share = ours.figure("share_of_local_ratio")
        if not share:
            continue
        what = f"share of the local rate, {ours.parameters['store']}, {ours.parameters['op']}s"
        measured = f"{share.median:.3f} ({share.low:.3f} to {share.high:.3f})"
        why = never or limited_by(local, ours)
        if why:
            found.append({"experiment": NAME, "skipped": f"the aim, {what}: {why}; measured {measured}"})
        else:
            found.append({"experiment": NAME, "aim": f"{what} ({share.low:.3f} to {share.high:.3f})", "value": share.median,
                          "bound": f">= {BOUND}", "kept": share.median >= BOUND})  # fmt: skip
    return found
