"""A Ceph of one monitor and one disk, with one image, for what a gateway adds to librbd."""

import os
import shutil
import subprocess

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "rbd", "fio")
POOL = "rbd"
IMAGE = "bench"
USER = "gateway"
SIZE = 512 << 20  # bytes of the image, all of them written before anything is measured
PATIENCE = 120.0  # seconds for whatever has to come about in the cluster

# What the gateway sets for its own client (gateway/src/backend/rbd/rados_client.cc).
AS_GATEWAYS = """\
rbd_cache = false
rbd_disable_zero_copy_writes = true
rbd_discard_granularity_bytes = 4096
rbd_atime_update_interval = 0
rbd_mtime_update_interval = 0
rbd_blocklist_on_break_lock = false
"""


class CephError(Exception):
    pass


def missing():
    """Programs that this machine lacks."""
    return [p for p in PROGRAMS if not shutil.which(p)]


class Ceph:
    """`start` and `stop` may be called by each target that uses it; the first of them counts."""

    def __init__(self, setup):
        self.setup = setup
        self.directory = directory_of(setup.ram_file)
        self.started = False

    @property
    def conf(self):
        return os.path.join(self.directory, "ceph.conf")

    @property
    def librbd_conf(self):
        """For clients that are to be as a gateway's is."""
        return os.path.join(self.directory, "librbd.conf")

    @property
    def keyring(self):
        return os.path.join(self.directory, f"{USER}.keyring")

    def run(self, *command, environment=None, core=None):
        """Its output. It and its children run on `core`, if one is given."""
        log = os.path.join(self.setup.results, "ceph.log")
        pin = ["taskset", "-c", str(core)] if core is not None else []
        with open(log, "ab") as out:
            done = subprocess.run(
                [*pin, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out,
                timeout=PATIENCE, check=False,
                env=os.environ | {"CEPH_CONF": self.conf} | (environment or {}),
            )  # fmt: skip
        if done.returncode != 0:
            raise CephError(f"{command[0]} {command[1]} failed, see {log}")
        return done.stdout

    def start(self):
        """The cluster, beside whom the client of other targets would be, and the image in it."""
        if self.started:
            return
        tool = mini_ceph(self.setup.root)
        size = {"OSD_MIB": "4096"}
        self.run(tool, "start", self.directory, environment=size, core=self.setup.client_core)
        with open(self.conf) as f:
            text = f.read().replace("[client]\n", "[client]\n" + AS_GATEWAYS, 1)
        with open(self.librbd_conf, "w") as f:
            f.write(text.replace(f"{self.directory}/keyring", self.keyring))
        features = ("--image-feature", "layering,exclusive-lock,deep-flatten")
        self.run("rbd", "create", "--size", f"{SIZE >> 20}M", *features, f"{POOL}/{IMAGE}")
        self.run("fio", *fio_job(), "--rw=write", "--bs=4M", "--iodepth=8",
                 environment={"CEPH_CONF": self.librbd_conf})  # fmt: skip
        self.started = True

    def stop(self):
        destroy(self.setup.root, self.directory)
        self.started = False


def directory_of(file):
    return f"{file}.ceph"  # in RAM: no disk's moods


def mini_ceph(root):
    return os.path.join(root, "tests/lib/mini-ceph")


def destroy(root, directory):
    """Ends the daemons: they do not end with this process."""
    if os.path.exists(directory):
        subprocess.run(
            [mini_ceph(root), "destroy", directory], capture_output=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip


def fio_job():
    return [
        "--name=librbd", "--ioengine=rbd", f"--clientname={USER}", f"--pool={POOL}",
        f"--rbdname={IMAGE}", f"--size={SIZE}",
    ]  # fmt: skip
