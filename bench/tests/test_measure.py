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


class ReadFilesOnceTest(unittest.TestCase):
    def test_every_target_reads_the_whole_of_its_file_and_a_failure_is_told(self):
        read = []

        def fake(setup, kind, cell):
            if kind.name == "broken":
                raise measure.MeasureError("no output")
            read.append((kind.name, cell.store, cell.op, cell.sequential))
            self.assertGreaterEqual(setup.window * measure.SLOWEST_READ, setup.file_size)

        notes = []
        kinds = [target("sluice", "file"), target("direct", "volume"), target("rbd", "rbd"), target("broken", "file")]
        with unittest.mock.patch.object(measure, "measure", fake):
            measure.read_files_once(Setup(), kinds, notes)
        self.assertEqual(read, [("sluice", "file", "read", True), ("direct", "volume", "read", True)])
        self.assertEqual(notes, ["broken didn't read its file before: no output"])


if __name__ == "__main__":
    unittest.main()
