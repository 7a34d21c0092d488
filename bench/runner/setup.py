"""What a run is made with, and the files it works on."""

import contextlib
import dataclasses
import glob
import os
import re
import shutil

from runner import ceph, processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHM = "/dev/shm/sluice-bench"  # RAM: of Ceph's disks, and of targets that have no memory LUN
DISK = os.path.join(ROOT, "build/bench/disk")  # where the checkout is: on a disk, as a rule


@dataclasses.dataclass
class Setup:
    root: str
    results: str
    programs: str
    gateway: str
    file: str  # on a disk, in the page cache
    ram_file: str
    file_size: int  # bytes of each store
    span: int
    window: float
    warmup: float
    target_core: int
    client_core: int
    nice: int
    realtime: bool
    wait: str
    congestion: str = "auto"
    bare_args: tuple = ()
    gateway_args: tuple = ()

    def program(self, name):
        return os.path.join(self.programs, name)


def make_file(path, size):
    """Every block of it is written: holes would read as the one zero page."""
    block = os.urandom(1 << 20)
    with open(path, "wb") as f:
        for _ in range(size >> 20):
            f.write(block)
        os.fsync(f.fileno())


def make_files(setup):
    os.makedirs(os.path.dirname(setup.file), exist_ok=True)
    make_file(setup.file, setup.file_size)
    make_file(setup.ram_file, setup.file_size)


def remove_files(setup):
    shutil.rmtree(os.path.dirname(setup.file), ignore_errors=True)
    with contextlib.suppress(OSError):
        os.unlink(setup.ram_file)


def remove_stale_files():
    """What a killed run left; a live one's file bears the number of a live process."""
    for path in glob.glob(f"{DISK}-*"):
        if not processes.alive(path.rsplit("-", 1)[1]):
            shutil.rmtree(path, ignore_errors=True)
    for path in glob.glob(f"{SHM}-*.img*"):
        number = re.search(r"-(\d+)\.img(\.cluster|\.ceph)?$", path)
        if not number or processes.alive(number.group(1)):
            continue
        if number.group(2) == ".ceph":
            ceph.destroy(ROOT, path)
        elif number.group(2):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
