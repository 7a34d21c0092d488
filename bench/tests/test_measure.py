import dataclasses
import types
import unittest
import unittest.mock

from runner import measure


@dataclasses.dataclass(frozen=True)
class Setup:
    file_size: int = 1 << 30
    warmup: float = 0.2
    window: float = 0.8


def target(name, *stores):
    return types.SimpleNamespace(name=name, measures=lambda cell: cell.store in stores)


class TouchOnceTest(unittest.TestCase):
    def test_every_target_writes_its_memory_and_reads_its_file_and_a_failure_is_reported(self):
        touched = []

        def fake(setup, kind, cell, more):
            if kind.name == "broken":
                raise measure.MeasureError("no output")
            touched.append((kind.name, cell.store, more))
            if not more:
                self.assertGreaterEqual(setup.window * measure.SLOWEST_READ, setup.file_size)

        notes = []
        kinds = [target("sluice", "memory", "file"), target("direct", "volume"), target("rbd", "rbd"), target("broken", "file")]
        with unittest.mock.patch.object(measure, "measure", fake):
            measure.touch_once(Setup(), kinds, notes)
        self.assertEqual(touched, [("sluice", "memory", measure.FILL), ("sluice", "file", ()), ("direct", "volume", ())])
        self.assertEqual(notes, ["broken didn't touch its page-cached file before: no output"])


if __name__ == "__main__":
    unittest.main()
