import dataclasses
import unittest

from runner import aims, cells, stats
from tests.records import READ_4K, rounds


def summaries(*records):
    return stats.by_cell([r for rs in records for r in rs], cells.from_record)


def verdict(found, text):
    return next(v for v in found if v.aim == text)


class BoundTest(unittest.TestCase):
    def test_each_aim_has_its_bound(self):
        def bound(*cell):
            return aims.cpu_bound(cells.Cell(*cell))

        for store in ("null", "memory"):
            self.assertEqual(bound(store, "read", 4096, 32, 1, False), 1.25)
            self.assertEqual(bound(store, "write", 4096, 32, 1, False), 1.2)
            for op in ("read", "write"):
                self.assertEqual(bound(store, op, 512, 32, 1, False), 1.5)
                self.assertEqual(bound(store, op, 131072, 32, 1, False), 1.1)
        self.assertIsNone(bound("null", "read", 8192, 32, 1, False))
        self.assertIsNone(bound("null", "read", 4096, 1, 1, False))
        self.assertIsNone(bound("null", "read", 4096, 32, 8, False))
        self.assertIsNone(bound("null", "read", 4096, 32, 1, True))
        self.assertIsNone(bound("rbd", "read", 4096, 32, 1, False))
        self.assertIsNone(bound("file", "read", 4096, 32, 1, False))
        self.assertEqual(aims.latency_bound(cells.Cell("null", "read", 4096, 1, 1, False)), 1.1)

    def test_forwarding_has_bounds_for_small_and_large_commands(self):
        def bound(*cell):
            return aims.forwarded_bound(cells.Cell(*cell))

        for op in ("read", "write"):
            for store in ("volume", "disk"):
                self.assertEqual(bound(store, op, 4096, 32, 1, False), 2.5)
                self.assertEqual(bound(store, op, 131072, 32, 1, False), 2.2)
        self.assertIsNone(bound("file", "read", 4096, 32, 1, False))
        self.assertIsNone(bound("volume", "read", 4096, 1, 1, False))

    def test_every_aim_is_among_the_cells_measured_first(self):
        aimed = [c for g in cells.aimed() for c in g.cells]
        bounds = {aims.cpu_bound(c) for c in aimed} | {aims.latency_bound(c) for c in aimed}
        self.assertLessEqual({1.25, 1.2, 1.5, 1.1}, bounds)
        many = {(c.store, c.op) for c in aimed if c.sessions == 8 and c.depth == 32}
        self.assertEqual(many, {(s, op) for s in ("null", "memory") for op in ("read", "write")})
        self.assertTrue(any(c.digests for c in aimed))
        forwarded = {(c.op, aims.forwarded_bound(c)) for c in aimed if c.store == "volume"}
        self.assertEqual(forwarded, {(op, b) for op in ("read", "write") for b in (2.5, 2.2)})
        on_disk = {(c.op, aims.forwarded_bound(c)) for c in aimed if c.store == "disk"}
        self.assertEqual(on_disk, {("write", 2.5), ("write", 2.2)})


class JudgeTest(unittest.TestCase):
    def test_a_ratio_within_its_bound_is_met_and_one_beyond_is_missed(self):
        for cpu, met in ((1.24, True), (1.26, False)):
            found = aims.judge(summaries(rounds("bare", [1.0]), rounds("sluice", [cpu])))
            self.assertEqual(verdict(found, "CPU per command").met, met)

    def test_many_sessions_are_judged_by_what_they_make_of_one_sessions_multiple_of_bare(self):
        many = dataclasses.replace(READ_4K, sessions=8)
        for cpu, met in ((2.5, True), (2.6, False)):  # of 2 in bare; one session costs 1.2 times
            found = aims.judge(
                summaries(rounds("bare", [1.0, 3.0]), rounds("sluice", [1.2, 3.6]),
                          rounds("bare", [2.0, 4.0], cell=many),
                          rounds("sluice", [cpu, 2 * cpu], cell=many))
            )  # fmt: skip
            judged = verdict(found, "CPU per command, 8 sessions against one")
            self.assertEqual((judged.cell, judged.met), (many.name, met))
            self.assertAlmostEqual(judged.ratio, cpu / 2 / 1.2)

    def test_many_sessions_without_one_to_compare_with_are_not_judged(self):
        many = dataclasses.replace(READ_4K, sessions=8)
        found = aims.judge(
            summaries(rounds("bare", [1.0], cell=many), rounds("sluice", [9.0], cell=many))
        )
        self.assertEqual(found, [])

    def test_tgt_must_cost_five_times_as_much(self):
        for cpu, met in ((5.1, True), (4.9, False)):
            found = aims.judge(summaries(rounds("sluice", [1.0]), rounds("tgt", [cpu])))
            self.assertEqual(verdict(found, "work per core against tgt").met, met)

    def test_forwarding_is_judged_against_the_direct_way_of_the_same_rounds(self):
        for size, cpu, met in ((4096, 4.9, True), (4096, 5.1, False), (131072, 4.5, False)):
            cell = cells.Cell("volume", "read", size, 32, 1, False)
            found = aims.judge(
                summaries(rounds("direct", [2.0, 4.0], cell=cell),
                          rounds("forwarded", [cpu, 2 * cpu], cell=cell))
            )  # fmt: skip
            self.assertEqual([(v.ratio, v.met) for v in found], [(cpu / 2, met)])

    def test_an_image_of_ceph_is_held_to_librbds_rate_of_the_same_rounds(self):
        for size, unit in ((4096, "IOPS"), (131072, "MB/s")):
            for cpu, met in ((1.1, True), (1.12, False)):  # the records' rates are its inverse
                cell = cells.Cell("rbd", "read", size, 32, 1, False)
                found = aims.judge(
                    summaries(rounds("librbd", [1.0, 2.0], cell=cell),
                              rounds("rbd", [cpu, 2 * cpu], cell=cell))
                )  # fmt: skip
                self.assertEqual([(v.unit, v.met) for v in found], [(unit, met)])
                self.assertAlmostEqual(found[0].ratio, 1 / cpu)

    def test_latency_is_judged_with_one_command_in_flight(self):
        cell = cells.Cell("null", "read", 4096, 1, 1, False)
        found = aims.judge(
            summaries(rounds("bare", [9.0], cell=cell, p50=20.0),
                      rounds("sluice", [9.0], cell=cell, p50=22.0))
        )  # fmt: skip
        self.assertAlmostEqual(verdict(found, "QD1 p50").ratio, 1.1)

    def test_digests_are_judged_by_what_they_add(self):
        with_digests = READ_4K.shape.cell(True)
        found = aims.judge(
            summaries(rounds("bare", [1.0]), rounds("bare", [1.5], cell=with_digests),
                      rounds("sluice", [2.0]), rounds("sluice", [2.6], cell=with_digests))
        )  # fmt: skip
        added = verdict(found, "what CRC32C adds")
        self.assertAlmostEqual(added.ratio, 1.2)
        self.assertFalse(added.met)

    def test_without_our_target_there_is_nothing_to_judge(self):
        self.assertEqual(aims.judge(summaries(rounds("bare", [1.0]), rounds("tgt", [7.0]))), [])


if __name__ == "__main__":
    unittest.main()
