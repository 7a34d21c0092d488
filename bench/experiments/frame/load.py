"""What is asked of a target in one cell of an experiment; the runner's cells know only what its own
matrix needs."""

import dataclasses

from runner import cells, stats


@dataclasses.dataclass(frozen=True)
class Load:
    store: str  # a name of subjects.Store
    op: str  # "read", "write" or "mix"
    size: int  # bytes
    depth: int  # commands in flight per session
    sessions: int = 1
    luns: int = 1  # each session uses all of them, its commands spread over them
    sequential: bool = False
    header_digest: bool = False
    data_digest: bool = False
    write_percent: int = 50  # of a mix

    @property
    def more_args(self):
        args = ["--luns", str(self.luns)]
        if self.op == "mix":
            args += ["--write-percent", str(self.write_percent)]
        if self.header_digest:
            args.append("--header-digest")
        if self.data_digest:
            args.append("--data-digest")
        return args

    @property
    def digests(self):
        both = {(True, True): "both", (True, False): "header", (False, True): "data"}
        return both.get((self.header_digest, self.data_digest), "none")

    @property
    def name(self):
        order = "sequential " if self.sequential else ""
        return (
            f"{cells.size_name(self.size)} {order}{self.op} {self.sessions} × {self.luns} ×"
            f" QD{self.depth} {self.store}, digests {self.digests}"
        )


def figures(record):
    """Of a record of iscsi-load, in SI units (see ../README.md)."""
    latency = record["latency_us"]
    return {
        "iops": record["iops"],
        "bytes_per_second": record["mb_per_s"] * 1e6,
        "target_cpu_s_per_command": record["target_cpu_us"] / 1e6,
        "target_cpu_share": record["target_cpu"],
        "latency_mean_s": latency["mean"] / 1e6,
        "latency_p50_s": latency["p50"] / 1e6,
        "latency_p99_s": latency["p99"] / 1e6,
        "latency_p999_s": latency["p999"] / 1e6,
        "client_busy_share": record["client_busy"],
        "noise_share": stats.noise(record),
    }
