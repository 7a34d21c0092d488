"""The targets of bench/runner with the LUNs an experiment wants, and istgt."""

import dataclasses
import os
import shutil

from runner import fio, processes, targets


@dataclasses.dataclass(frozen=True)
class Store:
    """What stands behind a LUN. `kind`: null, memory, file or block; `size` in bytes; `path` of the last
    two, and of memory the RAM file for targets without memory LUNs; `direct`: past the page cache; `write_cache`: a write is acknowledged once it is taken, as
    tgt and istgt have it, not once it is durable, which is the gateway's default."""

    name: str
    kind: str
    path: str = ""
    size: int = 1 << 30
    direct: bool = False
    write_cache: bool = True


class _Stores:
    """`stores`: one LUN each, from `first_lun` on."""

    first_lun = 0

    def __init__(self, setup, stores):
        super().__init__(setup)
        self.stores = [s for s in stores if self.takes(s)]
        numbered = list(enumerate(self.stores, self.first_lun))
        self.luns = {store.name: lun for lun, store in reversed(numbered)}
        self.numbered = dict(numbered)

    def takes(self, store):
        return True

    def measures(self, load):
        return load.store in self.luns


class Sluice(_Stores, targets.Sluice):
    def __init__(self, setup, stores, reactors=1):
        super().__init__(setup, stores)
        self.reactors = reactors
        self.metrics_port = 0  # known once it runs

    def backends(self):
        return {lun: self._backend(store) for lun, store in self.numbered.items()}

    @staticmethod
    def _backend(store):
        if store.kind == "null":
            return f"null:{store.size}"
        if store.kind == "memory":
            return f"memory:{store.size}"
        cache = f"write-cache={'on' if store.write_cache else 'off'}"
        if store.kind == "block":
            return f"block:{store.path},{cache}"
        way = "direct" if store.direct else "buffered"
        return f"file:{store.path},size={store.size},io={way},{cache}"

    def start(self):
        self.metrics_port = processes.free_port()
        os.makedirs(f"{self.setup.results}/{self.name}", exist_ok=True)
        own = ("--metrics", f"127.0.0.1:{self.metrics_port}", "--admin-socket", "off",
               "--state-dir", f"{self.setup.results}/{self.name}")  # fmt: skip
        self.setup = dataclasses.replace(
            self.setup, gateway_args=(*self.setup.gateway_args, *own)
        )
        super().start()


class Tgt(_Stores, targets.Tgt):
    first_lun = 1

    def backings(self):
        return {lun: self._backing(store) for lun, store in self.numbered.items()}

    @staticmethod
    def _backing(store):
        if store.kind == "null":
            return ("--bstype", "null", "-b", "/dev/null")
        direct = ("--bsoflags", "direct") if store.direct else ()
        return ("--bstype", "rdwr", *direct, "-b", store.path)


class Bare(_Stores, targets.Bare):
    """The limit, with nothing behind it, and with memory."""

    def takes(self, store):
        return store.kind in ("null", "memory")

    def backings(self):
        return [word for s in self.stores if s.kind == "memory" for word in ("--memory", str(s.size))]

    def client_args(self, load):
        kind = self.numbered[self.luns[load.store]].kind
        return ["--protocol", "bare", "--port", str(self.port), "--store", kind]


class Istgt(_Stores, targets.Iscsi):
    """The page cache is its only way, to devices too; it has no null device, and insists on
    InitialR2T=Yes."""

    name = "istgt"
    every = 2

    def takes(self, store):
        return store.kind in ("memory", "block") or (store.kind == "file" and not store.direct)

    def start(self):
        self.port = processes.free_port()
        folder = os.path.join(self.setup.results, "istgt")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "auth.conf"), "w"):
            pass
        config = os.path.join(folder, "istgt.conf")
        with open(config, "w") as f:
            f.write(self._config(folder))
        self.launch(["istgt", "-D", "-c", config])

    def _config(self, folder):
        luns = "\n".join(
            f"  LUN{lun} Storage {store.path} {store.size}" for lun, store in self.numbered.items()
        )
        base, _, disk = targets.IQN.partition(":")
        control = processes.free_port()
        return f"""[Global]
  NodeBase "{base}"
  PidFile {folder}/istgt.pid
  AuthFile {folder}/auth.conf
  MediaDirectory {folder}
  Timeout 30
  NopInInterval 20
  DiscoveryAuthMethod None
  MaxSessions 128
  MaxConnections 1
  MaxR2T 32
  MaxOutstandingR2T 8
  DefaultTime2Wait 2
  DefaultTime2Retain 0
  FirstBurstLength 1048576
  MaxBurstLength 1048576
  MaxRecvDataSegmentLength 262144
  InitialR2T Yes
  ImmediateData Yes
  DataPDUInOrder Yes
  DataSequenceInOrder Yes
  ErrorRecoveryLevel 0
[UnitControl]
  AuthMethod None
  Portal UC1 127.0.0.1:{control}
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 127.0.0.1:{self.port}
[InitiatorGroup1]
  InitiatorName "ALL"
  Netmask 127.0.0.0/8
[LogicalUnit1]
  TargetName {disk}
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod None
  UseDigest Auto
  UnitType Disk
  QueueDepth 64
{luns}
"""


class Local(_Stores, targets.Target):
    """No target at all: fio on the file or device itself, on the target's core."""

    name = "local"
    overhead = 0.6

    def takes(self, store):
        return store.kind != "null"

    def start(self):
        pass

    def stop(self):
        pass

    def measure(self, load):
        return fio.run(self.setup, self, load)

    def fio_job(self, load):
        store = self.numbered[self.luns[load.store]]
        return [
            "--name=local", "--ioengine=io_uring", f"--filename={store.path}",
            f"--size={store.size}", f"--direct={int(store.direct)}", "--thread=1",
        ]  # fmt: skip

    def fio_environment(self):
        return {}


PROGRAMS = {"local": ("fio",), "tgt": ("tgtd", "tgtadm"), "istgt": ("istgt",)}


def missing(name):
    """Why a peer can't run here; empty if it can."""
    lacking = [p for p in PROGRAMS.get(name, ()) if not shutil.which(p)]
    return f"{lacking[0]} is not installed (.ci/deps bench)" if lacking else ""
