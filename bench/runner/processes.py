"""Children that never outlive the run, whatever ends it."""

import ctypes
import os
import signal
import socket
import subprocess
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


def spawn(
    command,
    core,
    nice=0,
    realtime=False,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    environment=None,
):
    """Starts a child on one core; the kernel kills it if this process dies without cleaning up.
    `environment` adds to ours."""

    def prepare():
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.sched_setaffinity(0, {core})
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        elif nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=os.environ | (environment or {}),
        preexec_fn=prepare,
    )


def stop(process, patience=3.0):
    """Asks, then makes."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def wait_listening(process, port, patience=15.0):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if listening(port):
            return True
        time.sleep(0.05)
    return False


def alive(pid):
    return os.path.exists(f"/proc/{pid}")
