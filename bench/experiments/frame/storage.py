"""Files, loop devices and file systems of a run. All of them go with it."""

import ctypes
import os
import shutil
import subprocess

from experiments.frame.stopping import CannotRun

_CLONE_NEWNS = 0x00020000


def command(*words, timeout=60):
    """Its output; CannotRun with what it said."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    except FileNotFoundError:
        raise CannotRun(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CannotRun(f"{' '.join(words)}: no end within {timeout} s") from None
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def disk_file(options, name, size):
    """A file of random bytes in the run's scratch folder, written to the disk."""
    path = os.path.join(options.scratch, name)
    block = os.urandom(1 << 20)
    with open(path, "wb") as f:
        for _ in range(size >> 20):
            f.write(block)
        f.flush()
        os.fsync(f.fileno())
    return path


def loop_device(options, path, direct=True):
    """A block device over a file. The kernel detaches it when the last who has it open goes, and we
    have it open: it doesn't outlive a run that is killed."""
    how = ("--direct-io=on",) if direct else ()
    device = command("losetup", "--find", "--show", *how, path)
    try:
        held = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        command("losetup", "--detach", device)
    options.cleanup.callback(os.close, held)
    return device


def private_mounts():
    """From here on, mounts are this process's and its children's: they go with them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        why = os.strerror(ctypes.get_errno())
        raise CannotRun(f"a mount namespace: {why} (it takes root)")
    command("mount", "--make-rprivate", "/")


def forget(path):
    """Drops the page cache's share of a file, so that the next read goes to the storage."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def missing(*programs):
    """Those that are not installed."""
    return [p for p in programs if not shutil.which(p)]
