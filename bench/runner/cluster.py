"""A control plane and two gateways with two volumes on a disk, one of them with a write cache, for what a
forwarded command costs."""

import json
import os
import shutil
import subprocess
import time

from runner import processes

INITIATOR = "iqn.2026-11.dev.sluice:iscsi-load"
VOLUME_IQN = "iqn.2026-11.dev.sluice:bench-volume"
NODE = "node-1"
GATEWAYS = 2
PROGRAMS = ("sluice-controlplane", "sluicectl")
# Which volume serves a cell of which store, as which LUN.
VOLUMES = {"volume": ("cached", 0), "disk": ("durable", 1)}
WRITE_CACHE = {"cached": "WRITE_CACHE_ENABLED", "durable": "WRITE_CACHE_DISABLED"}
PATIENCE = 60.0  # seconds for whatever has to come about in the cluster


class ClusterError(Exception):
    pass


class Cluster:
    """`start` and `stop` may be called by each target that uses it; the first of them counts."""

    def __init__(self, setup):
        self.setup = setup
        self.directory = f"{setup.ram_file}.cluster"  # of etcd and others, in RAM: no disk's moods
        self.pools = {name: f"{setup.file}.{name}" for name in WRITE_CACHE}  # by volume
        self.children = []
        self.gateways = []
        self.ports = []
        self.owners = {}  # by volume, as an index of `ports`
        self.environment = {}

    @property
    def pids(self):
        return [g.pid for g in self.gateways]

    def program(self, name):
        return os.path.join(os.path.dirname(self.setup.gateway), name)

    def log_path(self, name):
        return os.path.join(self.setup.results, f"{name}.log")

    def spawn(self, name, command, core):
        with open(self.log_path(name), "wb") as log:
            child = processes.spawn(
                command, core, self.setup.nice, self.setup.realtime, log, log, self.environment
            )
        self.children.append(child)
        return child

    def control(self, *arguments, text=None):
        done = subprocess.run(
            [self.program("sluicectl"), *arguments], input=text, capture_output=True, text=True,
            timeout=PATIENCE, env=os.environ | self.environment, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ClusterError(f"sluicectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, kind, name):
        return json.loads(self.control(kind, "get", name, "-o", "json"))

    def start(self):
        if self.children:
            return
        for directory in self.pools.values():
            os.makedirs(directory, mode=0o700)
        api = f"127.0.0.1:{processes.free_port()}"
        self.start_control_plane(api)
        self.ports = [processes.free_port() for _ in range(GATEWAYS)]
        self.control("apply", "-f", "-", text=self.objects())
        for i in range(GATEWAYS):
            self.gateways.append(self.start_gateway(i, api))
        self.until("the volumes are owned", self.settled)
        self.fill()

    def certificate(self, name):
        path = os.path.join(self.directory, "certs")
        return ["--tls-ca", f"{path}/ca.crt", "--tls-cert", f"{path}/{name}.crt",
                "--tls-key", f"{path}/{name}.key"]  # fmt: skip

    def start_control_plane(self, api):
        certs = os.path.join(self.directory, "certs")
        names = [word for i in range(GATEWAYS) for word in ("--gateway", f"gw-{i + 1}")]
        subprocess.run(
            [self.program("sluice-controlplane"), "certs", "--directory", certs, *names],
            check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
        self.environment = {
            "SLUICE_SERVER": api,
            "SLUICE_TLS_CA": f"{certs}/ca.crt",
            "SLUICE_TLS_CERT": f"{certs}/admin.crt",
            "SLUICE_TLS_KEY": f"{certs}/admin.key",
        }
        # Beside the client: what is measured has its core for itself.
        child = self.spawn(
            "controlplane",
            [self.program("sluice-controlplane"), "serve", "--listen", api, "--metrics", "",
             "--data-dir", os.path.join(self.directory, "etcd"), *self.certificate("server")],
            self.setup.client_core,
        )  # fmt: skip
        if not processes.wait_listening(child, int(api.rsplit(":", 1)[1])):
            log = self.log_path("controlplane")
            raise ClusterError(f"the control plane doesn't listen, see {log}")

    def objects(self):
        """What there is to serve, as `sluicectl apply` takes it."""
        found = []

        def add(kind, name, spec):
            head = {"apiVersion": "sluice.dev/v1", "kind": kind, "meta": {"name": name}}
            found.append(json.dumps(head | {"spec": spec}))

        add("Fabric", "loopback", {})
        add("GatewayPool", "default", {"fabrics": ["loopback"]})
        for i, port in enumerate(self.ports):
            portal = {"fabric": "loopback", "listen": f"127.0.0.1:{port}"}
            forwarding = f"127.0.0.1:{processes.free_port()}"
            add("Gateway", f"gw-{i + 1}", {"gatewayPool": "default", "node": NODE,
                "portals": [portal], "forwardingAddress": forwarding})  # fmt: skip
        for name, directory in self.pools.items():
            add("StoragePool", name, {"local": {"node": NODE, "directory": directory}})
            add("Volume", name, {"pool": name, "sizeBytes": self.setup.file_size, "writeCache": WRITE_CACHE[name]})
        luns = [{"id": lun, "volume": name} for name, lun in VOLUMES.values()]
        add("Host", "client", {"initiators": [INITIATOR], "allowUnauthenticated": True})
        add("Target", "volume", {"iqn": VOLUME_IQN, "gatewayPool": "default", "paths": GATEWAYS,
            "luns": luns, "hosts": ["client"]})  # fmt: skip
        return "\n---\n".join(found)

    def start_gateway(self, i, api):
        name = f"gw-{i + 1}"
        path = os.path.join(self.directory, name)
        return self.spawn(
            name,
            [self.setup.gateway, "--gateway-name", name, "--node", NODE, "--reactors", "1",
             "--state-dir", f"{path}.state", "--admin-socket", f"{path}.socket",
             "--control-plane", api, *self.certificate(f"gateway-{name}"),
             *self.setup.gateway_args],
            self.setup.target_core,
        )  # fmt: skip

    def settled(self):
        states = [self.get("gateway", f"gw-{i + 1}")["status"] for i in range(GATEWAYS)]
        if any(s.get("health") != "GATEWAY_HEALTH_READY" for s in states):
            return False
        numbers = [s["number"] for s in states]
        for name in self.pools:
            volume = self.get("volume", name)["status"]
            if volume.get("ownership") != "OWNERSHIP_STATE_OWNED":
                return False
            self.owners[name] = numbers.index(volume["ownerGateway"])
        return all(processes.listening(port) for port in self.ports)

    def until(self, what, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            ended = [c for c in self.children if c.poll() is not None]
            if ended or time.monotonic() > deadline:
                why = f"{ended[0].args[0]} has ended" if ended else f"not within {PATIENCE:.0f} s"
                raise ClusterError(f"{what}: {why}; the logs are in {self.setup.results}")
            time.sleep(0.05)

    def fill(self):
        """Every block of the volumes is written, and in the page cache."""
        block = os.urandom(1 << 20)
        for pool in self.pools.values():
            with open(self.image(pool), "r+b") as f:
                for _ in range(self.setup.file_size >> 20):
                    f.write(block)
                os.fsync(f.fileno())

    def image(self, pool):
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(pool)
            for name in names
            if os.path.getsize(os.path.join(folder, name)) == self.setup.file_size
        ]
        if len(found) != 1:
            raise ClusterError(f"{pool} should hold one image of the volume's size, not {found}")
        return found[0]

    def stop(self):
        for child in reversed(self.children):
            processes.stop(child, patience=12.0)  # a gateway takes 10 s at most
        self.children, self.gateways = [], []
        for directory in (self.directory, *self.pools.values()):
            shutil.rmtree(directory, ignore_errors=True)
