"""A file system at the initiator: QEMU's storage daemon logs in by libiscsi and shows the LUN as a
file (FUSE), over which stands a loop device with ext4. dd and daemon have the initiator's core."""

import os
import subprocess
import time

from experiments.frame import storage
from experiments.frame.stopping import CannotRun
from runner import processes, sampling, targets

PROGRAMS = ("qemu-storage-daemon", "mkfs.ext4", "losetup", "mount", "umount", "dd", "cmp",
            "taskset")  # fmt: skip
MEGABYTE = 1e6


class Initiator:
    """One login, from `with` to its end."""

    def __init__(self, options, kind, store):
        self.options, self.kind, self.store = options, kind, store
        self.lun = os.path.join(options.scratch, "lun")
        self.folder = os.path.join(options.scratch, "mounted")
        self.daemon, self.device, self.mounted = None, None, False

    def __enter__(self):
        try:
            self._login()
            # Not past the page cache: QEMU's export (7.2 at least) mixes up the data of writes
            # that come side by side, and buffered ones come one by one.
            self.device = storage.command("losetup", "--find", "--show", self.lun)
            storage.command("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0",
                            "-O", "^has_journal", self.device)  # fmt: skip
            self.mount()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _login(self):
        with open(self.lun, "w"):
            pass
        number = self.kind.luns[self.store.name]
        device = (f"driver=iscsi,node-name=lun,transport=tcp,portal=127.0.0.1:{self.kind.port},"
                  f"target={targets.IQN},lun={number},cache.direct=on")  # fmt: skip
        log = os.path.join(self.options.scratch, "initiator.log")
        with open(log, "wb") as out:
            self.daemon = processes.spawn(
                ["qemu-storage-daemon", "--blockdev", device, "--export",
                 f"type=fuse,id=export,node-name=lun,mountpoint={self.lun},writable=on"],
                self.options.client_core, self.options.nice, stdout=out, stderr=out,
            )  # fmt: skip
        end = time.monotonic() + 15
        while os.path.getsize(self.lun) == 0:
            if self.daemon.poll() is not None or time.monotonic() > end:
                with open(log, errors="replace") as f:
                    why = f.read().strip()
                raise CannotRun(f"qemu-storage-daemon: {why} (qemu-block-extra, /dev/fuse)")
            time.sleep(0.02)

    def mount(self):
        os.makedirs(self.folder, exist_ok=True)
        storage.command("mount", self.device, self.folder)
        self.mounted = True

    def unmount(self):
        """And nothing of it stays in the page cache, here or below."""
        storage.command("umount", self.folder)
        self.mounted = False
        for path in (self.device, self.lun):
            storage.forget(path)

    def __exit__(self, *_):
        for wanted, command in ((self.mounted, ["umount", self.folder]),
                                (self.device, ["losetup", "--detach", self.device])):  # fmt: skip
            if wanted:
                subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
        processes.stop(self.daemon)
        self.mounted, self.device = False, None


def copy(options, kind, source, to, size, *flags):
    """dd on the initiator's core: how fast, and what the target paid for a megabyte."""
    before = sampling.Sample(kind.pids, options.target_core)
    storage.command("taskset", "--cpu-list", str(options.client_core), "dd", f"if={source}",
                    f"of={to}", "bs=512K", *flags)  # fmt: skip
    passed = time.monotonic() - before.at
    run, *_ = sampling.Sample(kind.pids, options.target_core).since(before)
    return {
        "bytes_per_second": size / passed,
        "target_cpu_s_per_megabyte": run * passed / (size / MEGABYTE),
        "target_cpu_share": run,
    }


def measure_one(options, kind, store, source, size, round_number):
    with Initiator(options, kind, store) as initiator:
        path = os.path.join(initiator.folder, "file")
        written = copy(options, kind, source, path, size, "conv=fdatasync")
        initiator.unmount()
        initiator.mount()
        read = copy(options, kind, path, "/dev/null", size)
        storage.command("cmp", source, path)  # what came back is what was sent
    for op, figures in (("write", written), ("read", read)):
        place = {"test": "file system", "op": op, "store": store.name}
        options.figures(kind.name, place, round_number, figures)


def measure(options, kinds, stores):
    lacking = storage.missing(*PROGRAMS)
    if lacking:
        raise CannotRun(f"{' and '.join(lacking)} is not installed (.ci/deps clients guest)")
    size = options.choose(16 << 20, 64 << 20, 512 << 20)
    source = options.ram_file(size)
    storage.private_mounts()
    wanted = options.choose(("file-buffered",), ("file-buffered", "block"),
                            ("file-buffered", "file-direct", "block"))  # fmt: skip
    for store in [s for s in stores if s.name in wanted]:
        able = [k for k in kinds if store.name in k.luns]
        for r in range(options.choose(1, 2, options.rounds)):
            for kind in able[r % len(able) :] + able[: r % len(able)]:
                measure_one(options, kind, store, source, size, r + 1)
