"""What an experiment needs that runs in a guest (tests/guest): a place of its own, and the boot."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys

from experiments.frame.stopping import CannotRun

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
ISOLATED = "SLUICE_EXPERIMENT_ISOLATED"


def check(programs, *files):
    """`files`: pairs of a path and what makes it."""
    if os.geteuid() != 0:
        raise CannotRun("the guest's image and its wires need root")
    for path, what in (("/dev/net/tun", "no wire to a guest"), *files):
        if not os.path.exists(path):
            raise CannotRun(f"{path} is missing: {what}")
    for program in ("qemu-system-x86_64", "ip", "unshare", "mmdebstrap", *programs):
        if not shutil.which(program):
            raise CannotRun(f"{program} is missing (.ci/deps guest faults)")


def isolate():
    """Runs this again with its own network, processes and mounts: all of it ends with them."""
    if os.environ.get(ISOLATED):
        # In RAM, so that no disk is measured. The files end with the namespaces.
        for line in ("mount -t tmpfs tmpfs /run", "mount -t tmpfs tmpfs /dev/shm", "ip link set lo up"):
            call(line)
        return
    ways = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run(["unshare", *ways, "true"], capture_output=True).returncode != 0:
        raise CannotRun("no namespaces here (unshare refused)")
    done = subprocess.run([os.path.join(ROOT, "tests/guest/image")], stdout=sys.stderr)
    if done.returncode != 0:
        raise CannotRun("the guest's image can't be made (tests/guest/image)")
    # unshare is deaf to signals: who is asked to end ends it, and with it everything inside.
    child = subprocess.Popen(
        ["unshare", *ways, sys.executable, *sys.argv], env=os.environ | {ISOLATED: "1"}, preexec_fn=die_with_us
    )
    try:
        sys.exit(child.wait())
    finally:
        child.kill()
        child.wait()


def call(line):
    done = subprocess.run(line.split(), capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotRun(f"{line}: {done.stderr.strip()}")


def die_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def boot(options, script, begun, environment=None):
    """`options` of tests/guest/boot, `script` with its arguments. `begun`: what the script leaves once it runs."""
    done = subprocess.run(
        [os.path.join(ROOT, "tests/guest/boot"), *map(str, options), *map(str, script)],
        env=os.environ | (environment or {}), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode == 0:
        return
    if not os.path.exists(begun):
        raise CannotRun(f"no guest boots here (status {done.returncode}): it needs QEMU's x86-64 emulation and 1 GiB of memory")
    raise RuntimeError(f"the guest ended with {done.returncode}")
