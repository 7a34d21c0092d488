"""The programs under load: how each is started, and how the client must speak to it."""

import contextlib
import dataclasses
import os
import shutil
import subprocess

from runner import ceph, cluster, fio, measure, processes

IQN = "iqn.2026-11.dev.sluice:bench"


class StartError(Exception):
    pass


STORES = ("null", "memory", "file")  # what a target serves without a cluster


class Target:
    """`name` is its column; `every`: it takes part in each so-manyth round; `overhead`: seconds a
    measurement takes beyond its window: start, login, drain; `windows`: how long that is."""

    name = ""
    every = 1
    overhead = 0.15
    windows = 1

    def __init__(self, setup):
        self.setup = setup
        self.port = 0
        self.process = None
        self.log_path = os.path.join(setup.results, f"{self.name}.log")

    @property
    def pids(self):
        """The processes whose CPU use counts, together."""
        return [self.process.pid]

    @property
    def span(self):
        """Bytes of the LUN in use."""
        return self.setup.span

    def measures(self, cell):
        return cell.store in STORES

    def measure(self, cell):
        """A record, as iscsi-load makes it."""
        return measure.measure(self.setup, self, cell)

    def launch(self, command):
        with open(self.log_path, "wb") as log:
            self.process = processes.spawn(
                command, self.setup.target_core, self.setup.nice, self.setup.realtime, log, log
            )
        if not processes.wait_listening(self.process, self.port):
            raise StartError(f"{self.name} doesn't listen, its log: {self.log_tail()}")

    def log_tail(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()[-600:].strip()

    def start(self):
        raise NotImplementedError

    def stop(self):
        processes.stop(self.process)

    def client_args(self, cell):
        raise NotImplementedError


class Bare(Target):
    name = "bare"

    def backings(self):
        """As bare-echo takes them."""
        return ["--memory", str(self.setup.file_size), "--file", self.setup.file]

    def start(self):
        self.port = processes.free_port()
        self.launch(
            [self.setup.program("bare-echo"), "--port", str(self.port), *self.backings(),
             "--congestion", self.setup.congestion, *self.setup.bare_args]
        )  # fmt: skip

    def client_args(self, cell):
        return ["--protocol", "bare", "--port", str(self.port), "--store", cell.store]


class Iscsi(Target):
    luns = {}

    def client_args(self, cell):
        return ["--port", str(self.port), "--target", IQN, "--lun", str(self.luns[cell.store])]


class Sluice(Iscsi):
    name = "sluice"
    luns = {"null": 0, "memory": 1, "file": 2}

    reactors = 1

    def backends(self):
        """By LUN."""
        return {
            0: "null:1GiB",
            1: f"memory:{self.setup.file_size}",
            2: f"file:{self.setup.file},size={self.setup.file_size},io=buffered,write-cache=on",
        }

    def start(self):
        self.port = processes.free_port()
        given = [f"{lun}={backend}" for lun, backend in self.backends().items()]
        luns = [word for lun in given for word in ("--lun", lun)]
        self.launch(
            [self.setup.gateway, "--listen", f"127.0.0.1:{self.port}", "--target", IQN, *luns,
             "--reactors", str(self.reactors), *self.setup.gateway_args]
        )  # fmt: skip


class Direct(Target):
    """A volume of a cluster through its owner. Both gateways' CPU counts, as it does for Forwarded."""

    name = "direct"
    forwards = False

    def __init__(self, setup, shared):
        super().__init__(setup)
        self.cluster = shared

    @property
    def pids(self):
        return self.cluster.pids

    def measures(self, cell):
        return cell.store in cluster.VOLUMES

    def start(self):
        try:
            self.cluster.start()
        except cluster.ClusterError as e:
            raise StartError(str(e)) from None

    def stop(self):
        self.cluster.stop()

    def client_args(self, cell):
        volume, lun = cluster.VOLUMES[cell.store]
        gateway = self.cluster.owners[volume] ^ self.forwards
        return ["--port", str(self.cluster.ports[gateway]), "--initiator", cluster.INITIATOR,
                "--target", cluster.VOLUME_IQN, "--lun", str(lun)]  # fmt: skip


class Forwarded(Direct):
    """The same volume through the other gateway."""

    name = "forwarded"
    forwards = True


class Librbd(Target):
    """librbd itself, by fio, on the core that is a target's. Ceph is on the client's."""

    name = "librbd"
    every = 2
    overhead = 0.6
    windows = 2  # a disk of Ceph is less steady than RAM

    def __init__(self, setup, shared):
        super().__init__(setup)
        self.ceph = shared

    @property
    def span(self):
        return ceph.SIZE

    def measures(self, cell):
        return cell.store == "rbd"

    def measure(self, cell):
        self.need_ceph()
        return fio.run(self.setup, self, cell)

    def fio_job(self, _):
        return ceph.fio_job()

    def fio_environment(self):
        return {"CEPH_CONF": self.ceph.librbd_conf}

    # Not before its cells are measured: Ceph always has something to do.
    def start(self):
        pass

    def need_ceph(self):
        try:
            self.ceph.start()
        except ceph.CephError as e:
            raise measure.MeasureError(str(e)) from None

    def stop(self):
        self.ceph.stop()


class Rbd(Librbd):
    """The gateway and its client, both on the core that fio has. It runs for a measurement only:
    the image is the same one, and has one owner at a time."""

    name = "rbd"

    def serve(self):
        self.port = processes.free_port()
        image = f"{ceph.POOL}/{ceph.IMAGE}"
        access = f"conf={self.ceph.conf},user={ceph.USER},keyring={self.ceph.keyring}"
        self.launch(
            [self.setup.gateway, "--listen", f"127.0.0.1:{self.port}", "--target", IQN,
             "--lun", f"0=rbd:{image},{access}", "--reactors", "1", "--admin-socket", "off",
             "--state-dir", f"{self.ceph.directory}/gateway", *self.setup.gateway_args]
        )  # fmt: skip

    def measure(self, cell):
        self.need_ceph()
        self.serve()
        try:
            # A client that never sleeps would take the core from the gateway.
            beside = dataclasses.replace(
                self.setup, client_core=self.setup.target_core, wait="sleep"
            )
            return measure.measure(beside, self, cell)
        finally:
            processes.stop(self.process, patience=12.0)

    def client_args(self, cell):
        return ["--port", str(self.port), "--target", IQN, "--lun", "0"]


class Tgt(Iscsi):
    name = "tgt"
    every = 2  # a factor of five needs fewer rounds than one of 1.15
    luns = {"null": 1, "memory": 2, "file": 3}
    control = ""
    settings = {
        "MaxRecvDataSegmentLength": "262144",
        "MaxBurstLength": "1048576",
        "FirstBurstLength": "1048576",
        "InitialR2T": "No",
        "HeaderDigest": "CRC32C,None",
        "DataDigest": "CRC32C,None",
    }

    def start(self):
        self.port = processes.free_port()
        self.control = str(os.getpid() % 32768)  # names its control socket; the most it takes
        self.launch(
            ["tgtd", "-f", "-C", self.control, "--iscsi", f"portal=127.0.0.1:{self.port}"]
        )
        self.admin("target", "new", "--tid", "1", "-T", IQN)
        for lun, backing in self.backings().items():
            self.admin("logicalunit", "new", "--tid", "1", "--lun", str(lun), *backing)
        for key, value in self.settings.items():
            self.admin("target", "update", "--tid", "1", "--name", key, "--value", value)
        self.admin("target", "bind", "--tid", "1", "-I", "ALL")

    def backings(self):
        """By LUN, as tgtadm takes them."""
        return {
            1: ("--bstype", "null", "-b", "/dev/null"),
            2: ("--bstype", "rdwr", "-b", self.setup.ram_file),  # it has no memory of its own
            3: ("--bstype", "rdwr", "-b", self.setup.file),
        }

    def admin(self, mode, op, *rest):
        command = ["tgtadm", "-C", self.control, "--lld", "iscsi", "--mode", mode, "--op", op]
        done = subprocess.run([*command, *rest], capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise StartError(f"tgtadm {mode} {op}: {done.stderr.strip()}")

    def stop(self):
        # tgtd doesn't leave on SIGTERM while it has targets, and leaves its socket behind.
        processes.stop(self.process, patience=0.2)
        for suffix in ("", ".lock"):
            with contextlib.suppress(OSError):
                os.unlink(f"/var/run/tgtd/socket.{self.control}{suffix}")


def available(setup, wanted):
    """The targets that can run here, and why the others can't."""
    reasons = {}
    if not os.access(setup.gateway, os.X_OK):
        reasons["sluice"] = f"{setup.gateway} is not built"
    shared = cluster.Cluster(setup)
    missing = [p for p in cluster.PROGRAMS if not os.access(shared.program(p), os.X_OK)]
    if missing:
        why = f"{' and '.join(missing)} is not built beside the gateway"
        reasons |= {"direct": why, "forwarded": why}
    elif "sluice" in reasons:
        reasons |= {"direct": reasons["sluice"], "forwarded": reasons["sluice"]}
    if not shutil.which("tgtd") or not shutil.which("tgtadm"):
        reasons["tgt"] = "tgtd is not installed (apt-get install tgt)"
    lacking = ceph.missing()
    if lacking:
        why = f"{' and '.join(lacking)} is not installed (.ci/deps bench ceph)"
        reasons |= {"librbd": why, "rbd": why}
    elif "sluice" in reasons:
        reasons["rbd"] = reasons["sluice"]
    kinds = [Bare, Sluice, Tgt]
    chosen = [k(setup) for k in kinds if k.name in wanted and k.name not in reasons]
    ways = [k for k in (Direct, Forwarded) if k.name in wanted and k.name not in reasons]
    chosen += [way(setup, shared) for way in ways]
    cluster_of_images = ceph.Ceph(setup)
    ways = [k for k in (Librbd, Rbd) if k.name in wanted and k.name not in reasons]
    chosen += [way(setup, cluster_of_images) for way in ways]
    return chosen, {name: why for name, why in reasons.items() if name in wanted}
