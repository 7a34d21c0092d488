import dataclasses
import unittest

from runner import cells


class CellTest(unittest.TestCase):
    def test_names_say_what_differs(self):
        cell = cells.Cell("memory", "read", 512, 32, 8, True)
        self.assertEqual(cell.name, "512 B read 8× QD32 RAM CRC32C")
        cell = cells.Cell("null", "write", 131072, 1, 1, False)
        self.assertEqual(cell.name, "128k write QD1 null")
        cell = cells.Cell("rbd", "read", 4096, 32, 1, False, sequential=True)
        self.assertEqual(cell.name, "4k sequential read QD32 image of Ceph")

    def test_a_cell_survives_its_record_and_its_shape(self):
        for sequential in (False, True):
            cell = cells.Cell("rbd", "read", 4096, 32, 1, True, sequential=sequential)
            self.assertEqual(cells.from_record({"cell": dataclasses.asdict(cell)}), cell)
            self.assertEqual(cell.shape.cell(True), cell)

    def test_the_full_run_measures_every_combination_once(self):
        found = [c for g in cells.full() for c in g.cells]
        of_one = [c for c in found if c.store not in ("volume", "disk", "rbd")]
        self.assertEqual(len(of_one), 3 * 7 * 2 * 2 * 2 * 2)
        self.assertEqual(len([c for c in found if c.store == "volume"]), 2 * 2)
        self.assertEqual(len([c for c in found if c.store == "disk"]), 2)
        self.assertEqual(len([c for c in found if c.store == "rbd"]), 2 * 2 + 2)
        self.assertEqual(len(set(found)), len(found))

    def test_no_cell_of_the_pruned_run_is_measured_twice(self):
        found = [c for g in cells.aimed() + cells.further() for c in g.cells]
        self.assertEqual(len(set(found)), len(found))

    def test_pruning_keeps_the_first_and_what_fits(self):
        groups = cells.aimed() + cells.further()
        kept, spent = cells.prune(groups, 5, lambda g: 10.0, 70.0)
        self.assertEqual(kept, groups[:7])
        self.assertEqual(spent, 70.0)
        kept, _ = cells.prune(groups, 5, lambda g: 10.0, 1.0)
        self.assertEqual(kept, groups[:5])


if __name__ == "__main__":
    unittest.main()
