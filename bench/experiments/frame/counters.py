"""What the gateway and the network interface say of bytes; neither counts with the other."""

import re
import urllib.request

SAMPLE = re.compile(r'^sluice_gateway_(\w+)_bytes_total\{direction="(\w+)"\} ([0-9.e+]+)$')


def parse_metrics(text):
    """{"wire_send": bytes, "payload_read": bytes, ...} of a Prometheus text."""
    found = {}
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match:
            found[f"{match.group(1)}_{match.group(2)}"] = float(match.group(3))
    return found


def gateway(port):
    """From the gateway's metrics endpoint."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parse_metrics(answer.read().decode())


def interface(name="lo"):
    """Bytes an interface has received, packets' headers and all. On loopback every packet is
    received once, from any sender."""
    with open("/proc/self/net/dev") as f:
        line = next(line for line in f if line.strip().startswith(name + ":"))
    return int(line.split(":", 1)[1].split()[0])


def grown(after, before):
    return {name: value - before.get(name, 0) for name, value in after.items()}
