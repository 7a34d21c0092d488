import unittest

from runner import cells, stats
from tests.records import READ_4K, record, rounds


class SummaryTest(unittest.TestCase):
    def test_the_median_and_the_range_are_kept(self):
        cpu = stats.summarize(rounds("bare", [1.0, 3.0, 2.0])).figures["cpu_us"]
        self.assertEqual((cpu.median, cpu.low, cpu.high, cpu.spread), (2.0, 1.0, 3.0, 0.5))

    def test_noisy_rounds_do_not_count_when_two_quiet_ones_exist(self):
        quiet = rounds("bare", [1.0, 1.2])
        loud = [record("bare", 9.0, round_number=i, noise=0.5) for i in (2, 3, 4)]
        summary = stats.summarize(quiet + loud)
        self.assertAlmostEqual(summary["cpu_us"], 1.1)
        self.assertEqual((summary.quiet, summary.rounds), (2, 5))

    def test_one_quiet_round_is_not_trusted_alone(self):
        records = [record("bare", 1.0), record("bare", 3.0, round_number=1, noise=0.5)]
        self.assertEqual(stats.summarize(records)["cpu_us"], 2.0)

    def test_stolen_time_is_noise_as_waiting_is(self):
        stolen = record("bare", 1.0)
        stolen["core_steal"] = 0.2
        self.assertGreater(stats.noise(stolen), stats.QUIET)

    def test_a_target_whose_own_threads_wait_for_each_other_is_quiet(self):
        several = record("tgt", 1.0) | {"target_wait": 1.5, "target_cpu": 0.98, "core_busy": 0.99}
        self.assertLess(stats.noise(several), stats.QUIET)
        with_others = several | {"target_cpu": 0.7}
        self.assertAlmostEqual(stats.noise(with_others), 0.29)
        waits_a_little = with_others | {"target_wait": 0.05}
        self.assertAlmostEqual(stats.noise(waits_a_little), 0.05)

    def test_records_are_sorted_by_cell_and_target(self):
        other = cells.Cell("file", "write", 512, 1, 8, True)
        records = rounds("bare", [1.0]) + rounds("tgt", [7.0]) + rounds("bare", [5.0], cell=other)
        found = stats.by_cell(records, cells.from_record)
        self.assertEqual(list(found), [READ_4K, other])
        self.assertEqual(found[READ_4K]["tgt"]["cpu_us"], 7.0)
        self.assertEqual(found[other]["bare"]["cpu_us"], 5.0)


class PairingTest(unittest.TestCase):
    def test_drift_shared_by_a_round_cancels(self):
        bare = stats.summarize(rounds("bare", [1.0, 2.0, 3.0]))
        ours = stats.summarize(rounds("sluice", [1.3, 2.6, 3.9]))
        self.assertAlmostEqual(stats.paired_ratio(ours, bare, "cpu_us"), 1.3)

    def test_rounds_only_one_took_part_in_are_left_out(self):
        bare = stats.summarize(rounds("bare", [1.0, 100.0, 1.0]))
        tgt = stats.summarize([record("tgt", 7.0), record("tgt", 7.0, round_number=2)])
        self.assertAlmostEqual(stats.paired_ratio(tgt, bare, "cpu_us"), 7.0)

    def test_a_pair_is_quiet_only_if_both_are(self):
        bare = rounds("bare", [1.0, 1.0, 1.0])
        bare[2] = record("bare", 9.0, round_number=2, noise=0.5)
        ours = rounds("sluice", [2.0, 2.0, 2.0])
        times = stats.paired_ratio(stats.summarize(ours), stats.summarize(bare), "cpu_us")
        self.assertAlmostEqual(times, 2.0)

    def test_nothing_to_compare_is_no_ratio(self):
        bare = stats.summarize(rounds("bare", [1.0]))
        self.assertIsNone(stats.paired_ratio(bare, None, "cpu_us"))
        later = stats.summarize([record("sluice", 1.0, round_number=7)])
        self.assertIsNone(stats.paired_ratio(later, bare, "cpu_us"))

    def test_differences_are_paired_too(self):
        plain = stats.summarize(rounds("bare", [1.0, 2.0, 3.0]))
        digests = stats.summarize(rounds("bare", [1.5, 2.5, 3.5]))
        self.assertAlmostEqual(stats.paired_difference(digests, plain, "cpu_us"), 0.5)


if __name__ == "__main__":
    unittest.main()
