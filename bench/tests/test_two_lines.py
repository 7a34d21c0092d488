import importlib.util
import os
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "experiments", "two-lines")
SPEC = importlib.util.spec_from_file_location("two_lines_records", os.path.join(FOLDER, "records.py"))
records = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(records)

FIO = {"jobs": [{"error": 0, "read": {"bw_bytes": 12_000_000, "iops": 23.0, "total_ios": 50, "lat_ns": {"mean": 4e7}},
                 "write": {"bw_bytes": 0, "iops": 0.0, "total_ios": 0, "lat_ns": {"mean": 0.0}}}]}  # fmt: skip
SESSION = """
Target: iqn.2026-11.dev.sluice:two-lines (non-flash)
	Current Portal: 10.77.1.3:3260,1
		Negotiated iSCSI params:
		************************
		HeaderDigest: None
		MaxRecvDataSegmentLength: 262144
		InitialR2T: No
		MaxOutstandingR2T: 1
	Current Portal: 10.77.2.3:3260,1
		HeaderDigest: CRC32C
"""


def entry(**changed):
    return {"number": 1, "round": 2, "operation": "read", "lun": 1, "lines": 2, "cpu_seconds": 0.01, "retransmitted": 3} | changed


def rate(turn, lines, value, op="read"):
    return {"parameters": {"store": "file", "op": op, "depth": 8, "lines": lines}, "round": turn,
            "figures": {"bytes_per_second": value}}  # fmt: skip


class TwoLinesTest(unittest.TestCase):
    def test_a_record_has_figures_in_si_units(self):
        r = records.record(entry(), FIO, {}, 100_000_000)
        self.assertEqual(r["parameters"], {"op": "read", "size": 524288, "depth": 8, "lines": 2, "store": "file",
                                           "line_bits_per_second": 100_000_000})  # fmt: skip
        self.assertAlmostEqual(r["figures"]["target_cpu_s_per_command"], 0.0002)
        self.assertAlmostEqual(r["figures"]["latency_mean_s"], 0.04)
        self.assertAlmostEqual(r["figures"]["lines_share"], 12e6 / (2 * 12.5e6 * 1448 / 1514))

    def test_commands_one_at_a_time_are_cells_of_their_own(self):
        parameters = records.record(entry(operation="read-single"), FIO, {}, 1)["parameters"]
        self.assertEqual((parameters["op"], parameters["depth"]), ("read", 1))

    def test_a_run_of_fio_that_did_nothing_is_an_error(self):
        with self.assertRaises(ValueError):
            records.record(entry(operation="write"), FIO, {}, 1)

    def test_keys_are_those_of_the_first_session(self):
        self.assertEqual(
            records.session_keys(SESSION),
            {"HeaderDigest": "None", "MaxRecvDataSegmentLength": "262144", "InitialR2T": "No", "MaxOutstandingR2T": "1"},
        )

    def test_lines_are_compared_within_a_round_only(self):
        found = [rate(1, 1, 10), rate(1, 2, 19), rate(2, 2, 42), rate(2, 1, 21), rate(3, 2, 30)]
        self.assertEqual(records.ratios(found, "file", "read", 8), [1.9, 2.0])

    def test_an_aim_is_kept_by_the_median_of_the_rounds(self):
        rounds = [rate(n, lines, v) for n, two in ((1, 18), (2, 19.6), (3, 19.9)) for lines, v in ((1, 10), (2, two))]
        (aim,) = records.aims(rounds)
        self.assertTrue(aim["kept"])
        self.assertAlmostEqual(aim["value"], 1.96)
        (aim,) = records.aims(rounds[:4])
        self.assertFalse(aim["kept"])
        for r in rounds:
            r["parameters"]["depth"] = 1
        self.assertEqual(records.aims(rounds), [])  # one command is on one line


if __name__ == "__main__":
    unittest.main()
