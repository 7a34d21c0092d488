import importlib.util
import os
import pathlib
import tempfile
import unittest

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "experiments", "passthrough")
SPEC = importlib.util.spec_from_file_location("passthrough_records", os.path.join(FOLDER, "records.py"))
records = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(records)

FIO = """local : Saving output of prerun in local.prerun.txt
{"jobs": [{"error": 0, "read": {"bw_bytes": 19660800, "iops": 144.6, "total_ios": 457, "lat_ns": {"mean": 1e8}},
           "write": {"bw_bytes": 0, "iops": 0.0, "total_ios": 0, "lat_ns": {"mean": 0.0}}}]}"""
LOAD = """{"errors": 0, "first_error": "", "commands": 450, "mb_per_s": 19.0, "iops": 150.0, "latency_us": {"mean": 104000.0},
 "session": {"InitialR2T": "No"}}"""
BEFORE = "uptime 10.00\ncpu  100 0 50 800 50 0 0 0 0 0\ncpu0 50 0 25 400 25 0 0 0 0 0\nthread 1000000000 5 6\nthread 500000000 5 6\n"
AFTER = "uptime 12.00\ncpu  150 0 100 1080 70 0 0 0 0 0\ncpu0 75 0 50 540 35 0 0 0 0 0\nthread 1500000000 5 6\nthread 600000000 5 6\n"
RATES = {"nvme": 19_660_800, "sg": 13_107_200}


def measured(subject, turn, rate, idle=0.6, device=1.0, core=0.4, op="read"):
    figures = {"bytes_per_second": rate, "iops": rate / records.SIZE, "guest_idle_share": idle, "share_of_device_ratio": device}
    if subject == "sluice":
        figures |= {"target_cpu_s_per_command": core / (rate / records.SIZE)}
    return {"experiment": "passthrough", "subject": subject, "parameters": {"store": "sg", "op": op}, "round": turn, "figures": figures}


def rounds(*pairs, local={}, ours={}):
    found = []
    for turn, (base, through) in enumerate(pairs, 1):
        found += [measured("local", turn, base, **local), measured("sluice", turn, through, **ours)]
    records.relate(found)
    return found


class ParsingTest(unittest.TestCase):
    def test_idle_time_is_of_all_cpus_and_the_gateways_of_all_its_threads(self):
        idle, gateway = records.use_of(BEFORE, AFTER)
        self.assertAlmostEqual(idle, 0.75)
        self.assertAlmostEqual(gateway, 0.3)

    def test_a_gateway_without_threads_is_an_error(self):
        with self.assertRaises(ValueError):
            records.use_of(BEFORE, AFTER.split("thread")[0])

    def test_a_note_before_fios_report_is_passed_over_and_its_iops_are_those_of_its_bytes(self):
        self.assertEqual(records.done_by_fio(FIO, "read"), {"bytes_per_second": 19660800, "iops": 150.0, "latency_mean_s": 0.1})

    def test_a_load_that_failed_or_did_nothing_is_an_error(self):
        with self.assertRaises(ValueError):
            records.done_by_fio(FIO, "write")
        with self.assertRaises(ValueError):
            records.done_by_fio(FIO.replace('"error": 0', '"error": 5'), "read")
        with self.assertRaises(ValueError):
            records.done_by_load(LOAD.replace('"errors": 0', '"errors": 1'))
        with self.assertRaises(ValueError):
            records.done_by_load(LOAD.replace("450", "0"))

    def test_turns_are_records_in_si_units(self):
        with tempfile.TemporaryDirectory() as kept:
            folder = pathlib.Path(kept)
            (folder / "turns").write_text("1 1 nvme read local\n2 1 nvme read sluice\n")
            for number, said in (("1", FIO), ("2", LOAD)):
                for end, text in (("json", said), ("before", BEFORE), ("after", AFTER), ("waited", "500000000 2.0\n")):
                    (folder / f"{number}.{end}").write_text(text)
            local, ours = records.turns(folder, RATES)
        self.assertEqual((local["subject"], ours["subject"]), ("local", "sluice"))
        self.assertEqual(local["parameters"], ours["parameters"])
        self.assertEqual(local["parameters"]["device_bytes_per_second"], 19_660_800)
        self.assertEqual(local["figures"]["share_of_device_ratio"], 1.0)
        self.assertNotIn("target_cpu_share", local["figures"])
        self.assertEqual(ours["session"], {"InitialR2T": "No"})
        for figure, value in (("bytes_per_second", 19e6), ("latency_mean_s", 0.104), ("guest_idle_share", 0.75),
                              ("host_wait_share", 0.25), ("target_cpu_share", 0.3), ("target_cpu_s_per_command", 0.002)):  # fmt: skip
            self.assertAlmostEqual(ours["figures"][figure], value, msg=figure)


class JudgingTest(unittest.TestCase):
    def test_a_share_is_of_the_same_rounds_local_rate(self):
        found = rounds((100, 95), (200, 180))
        self.assertEqual([r["figures"]["share_of_local_ratio"] for r in found if r["subject"] == "sluice"], [0.95, 0.9])
        alone = [measured("local", 1, 100), measured("sluice", 2, 100)]
        records.relate(alone)
        self.assertNotIn("share_of_local_ratio", alone[1]["figures"])
        self.assertEqual(records.judged(alone), [])

    def test_the_median_of_the_rounds_keeps_an_aim_or_misses_it(self):
        (aim,) = records.judged(rounds((100, 90), (100, 93), (100, 99)))
        self.assertEqual((aim["value"], aim["bound"], aim["kept"]), (0.93, ">= 0.93", True))
        (aim,) = records.judged(rounds((100, 90), (100, 92), (100, 99)))
        self.assertFalse(aim["kept"])

    def test_operations_are_judged_one_by_one(self):
        found = rounds((100, 99)) + rounds((100, 80), local={"op": "write"}, ours={"op": "write"})
        self.assertEqual([aim["kept"] for aim in records.judged(found)], [True, False])

    def test_nothing_is_judged_where_the_device_was_not_the_limit(self):
        for words, changed in (
            ("75% of what it is set to", {"local": {"device": 0.75}}),
            ("25% of the guest's CPU time were idle under local", {"local": {"idle": 0.25}}),
            ("25% of the guest's CPU time were idle under sluice", {"ours": {"idle": 0.25}}),
            # What it would need for the local rate, not for what it got.
            ("80% of a core", {"ours": {"core": 0.4}}),
        ):
            with self.subTest(words):
                (line,) = records.judged(rounds((100, 50), **changed))
                self.assertNotIn("aim", line)
                self.assertIn(words, line["skipped"])
                self.assertIn("0.500", line["skipped"])

    def test_a_run_that_is_too_short_judges_nothing(self):
        (line,) = records.judged(rounds((100, 99)), "too short")
        self.assertIn("too short", line["skipped"])


if __name__ == "__main__":
    unittest.main()
