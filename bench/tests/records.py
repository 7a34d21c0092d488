"""Made-up measurements for the tests of what is computed from them."""

import dataclasses

from runner import cells

READ_4K = cells.Cell("null", "read", 4096, 32, 1, False)


def record(target, cpu_us, cell=READ_4K, round_number=0, noise=0.0, p50=20.0):
    return {
        "target": target,
        "round": round_number,
        "cell": dataclasses.asdict(cell),
        "commands": 1000,
        "errors": 0,
        "seconds": 1.0,
        "congestion": "cubic",
        "iops": 1e6 / cpu_us,
        "mb_per_s": 4096 / cpu_us,
        "latency_us": {"mean": p50, "p50": p50, "p99": 2 * p50, "p999": 3 * p50, "max": 4 * p50},
        "client_busy": 0.5,
        "client_cpu": 1.0,
        "client_wait": noise,
        "commands_per_receive": 8.0,
        "target_cpu_us": cpu_us,
        "target_cpu": 0.9,
        "target_cpu_stat": 0.9,
        "target_wait": 0.0,
        "target_slices": 1,
        "core_busy": 1.0,
        "core_softirq": 0.0,
        "core_steal": 0.0,
    }


def rounds(target, values, **kwargs):
    return [record(target, v, round_number=i, **kwargs) for i, v in enumerate(values)]
