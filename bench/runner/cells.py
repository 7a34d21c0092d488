"""What is measured: a cell is one kind of load; a shape is a cell with digests left open."""

import dataclasses

OPS = ("read", "write")
SIZES = (512, 4096, 8192, 16384, 32768, 65536, 131072)
STORE_NAMES = {
    "null": "null",
    "memory": "RAM",
    "file": "page-cached file",
    "volume": "page-cached file of a cluster",
    "disk": "durable file of a cluster",
    "rbd": "image of Ceph",
}


@dataclasses.dataclass(frozen=True, order=True)
class Shape:
    store: str  # a key of STORE_NAMES
    op: str  # "read" or "write"
    size: int
    depth: int
    sessions: int
    sequential: bool = dataclasses.field(default=False, kw_only=True)

    def cell(self, digests):
        return Cell(**dataclasses.asdict(self), digests=digests)


@dataclasses.dataclass(frozen=True, order=True)
class Cell(Shape):
    digests: bool

    @property
    def name(self):
        parts = [size_name(self.size), self.op, f"QD{self.depth}"]
        if self.sessions > 1:
            parts.insert(2, f"{self.sessions}×")
        if self.sequential:
            parts.insert(1, "sequential")
        parts.append(STORE_NAMES[self.store])
        if self.digests:
            parts.append("CRC32C")
        return " ".join(parts)

    @property
    def more_args(self):
        """Further arguments of iscsi-load, beside size, depth and the like."""
        return ["--digests"] if self.digests else []

    @property
    def shape(self):
        fields = dataclasses.asdict(self)
        del fields["digests"]
        return Shape(**fields)


def size_name(size):
    return f"{size // 1024}k" if size >= 1024 else f"{size} B"


def from_record(record):
    return Cell(**record["cell"])


@dataclasses.dataclass(frozen=True)
class Group:
    """One shape with and without digests, measured in the same rounds so that the two compare."""

    shape: Shape
    digests: tuple

    @property
    def cells(self):
        return [self.shape.cell(d) for d in self.digests]


FORWARDED = (4096, 131072)  # sizes at which the way through a forwarder is measured
IMAGE_DEPTHS = {4096: 32, 131072: 8}  # sizes at which an image of Ceph is measured


def _group(store, op, size, depth, sessions, both=False, sequential=False):
    shape = Shape(store, op, size, depth, sessions, sequential=sequential)
    return Group(shape, (False, True) if both else (False,))


def _images():
    """An image of Ceph; large commands are sequential, as they are in life."""
    return [
        _group("rbd", op, size, depth, 1, sequential=sequential)
        for size, depth in IMAGE_DEPTHS.items()
        for sequential in ((False, True) if size == 4096 else (True,))
        for op in OPS
    ]


def aimed():
    """The groups the aims name, first things first."""
    groups = [
        _group("null", "read", 4096, 32, 1, both=True),
        _group("memory", "read", 4096, 32, 1),
        _group("null", "write", 4096, 32, 1, both=True),
        _group("memory", "write", 4096, 32, 1),
        _group("null", "read", 512, 32, 1),
        _group("null", "write", 512, 32, 1),
        _group("memory", "read", 131072, 32, 1),
        _group("memory", "write", 131072, 32, 1),
    ]
    groups += [_group(store, op, 4096, 32, 8) for store in ("null", "memory") for op in OPS]
    groups += [_group(store, "read", 4096, 1, 1) for store in ("null", "memory")]
    groups += [_group("volume", op, size, 32, 1) for size in FORWARDED for op in OPS]
    groups += [_group("disk", "write", size, 32, 1) for size in FORWARDED]
    groups += _images()
    groups += [_group("null", op, 8192, 32, 1, both=True) for op in OPS]
    return groups


def further():
    """What the pruned run adds while its budget lasts, the most telling first."""
    groups = [_group("null", op, 131072, 32, 1) for op in OPS]
    groups += [_group("memory", op, 512, 32, 1) for op in OPS]
    groups += [_group("file", op, size, 32, 1) for size in (4096, 131072) for op in OPS]
    groups += [_group("null", op, 65536, 32, 1, both=True) for op in OPS]
    groups += [_group("null", "write", 4096, 1, 1)]
    for size in (16384, 32768):
        groups += [_group("null", op, size, 32, 1) for op in OPS]
    for size in (8192, 65536, 16384, 32768):
        groups += [_group("memory", op, size, 32, 1) for op in OPS]
    return groups


def full():
    """Every combination, the aimed ones first."""
    first = [g.shape for g in aimed()]
    rest = [
        Shape(store, op, size, depth, sessions)
        for depth in (32, 1)
        for sessions in (1, 8)
        for store in ("null", "memory", "file")
        for size in SIZES
        for op in OPS
    ]
    shapes = first + [s for s in rest if s not in first]
    return [Group(s, (False,) if s.store in ("volume", "disk", "rbd") else (False, True)) for s in shapes]


def smoke():
    return [
        _group("null", "read", 4096, 32, 1, both=True),
        _group("memory", "write", 4096, 1, 2),
        _group("file", "read", 4096, 32, 1),
        _group("volume", "write", 4096, 32, 1),
        _group("rbd", "write", 4096, 32, 1),
    ]


def prune(groups, must, cost, budget):
    """Of `groups`, those that fit the budget; the first `must` stay whatever they cost."""
    kept, spent = [], 0.0
    for i, group in enumerate(groups):
        price = cost(group)
        if i < must or spent + price <= budget:
            kept.append(group)
            spent += price
    return kept, spent
