"""Where the figures come from: facts that change them, and the congestion control they need."""

import datetime
import os
import platform
import shutil
import subprocess

_CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"


def _read(path, default=""):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return default


def _output(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def fix_congestion(private_network):
    """What all sockets of the run use by default. Targets' own sockets follow the system's choice,
    so it is changed where that harms no other program: in a network namespace of our own. There the kernel
    allows cubic only if the host lists it, and reno always."""
    if private_network:
        for name in ("cubic", "reno"):
            try:
                with open(_CONGESTION, "w") as f:
                    f.write(name)
                break
            except OSError:
                continue
    return _read(_CONGESTION, "unknown")


def cpu_model():
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def facts(setup, private_network):
    git = ("git", "-C", setup.root)
    dirty = _output(*git, "status", "--porcelain", "--untracked-files=no")
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_average": round(os.getloadavg()[0], 2),
        "congestion": setup.congestion,
        "private_network": private_network,
        "target_core": setup.target_core,
        "client_core": setup.client_core,
        "commit": _output(*git, "rev-parse", "--short", "HEAD") + ("+changes" if dirty else ""),
        "tgt": _output("dpkg-query", "-W", "-f", "${Version}", "tgt")
        if shutil.which("dpkg-query")
        else "",
    }
