import json
import os
import subprocess
import sys
import tempfile
import unittest

from runner import compare
from tests.records import rounds

PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compare")
STEADY = [1.0, 1.0, 1.0, 1.0]


def run(ours, bare=STEADY):
    return rounds("bare", bare) + rounds("sluice", ours)


def verdict(old, new):
    (change,), _ = compare.compare(old, new)
    return change.verdict


class JudgeTest(unittest.TestCase):
    def test_what_every_round_agrees_on_is_a_change(self):
        before = run([1.20, 1.22, 1.18, 1.21])
        self.assertEqual(verdict(before, run([1.30, 1.32, 1.29, 1.31])), compare.SLOWER)
        self.assertEqual(verdict(before, run([1.10, 1.12, 1.09, 1.11])), compare.FASTER)

    def test_what_one_round_disputes_is_noise(self):
        self.assertEqual(verdict(run([1.2, 1.2, 1.2, 1.35]), run([1.3] * 4)), compare.SAME)

    def test_a_small_change_is_none_however_steady(self):
        self.assertEqual(verdict(run([1.20] * 4), run([1.22] * 4)), compare.SAME)

    def test_a_slower_machine_is_no_slower_target(self):
        slow = run([2.4, 2.44, 2.36, 2.4], bare=[2.0] * 4)
        self.assertEqual(verdict(run([1.2, 1.22, 1.18, 1.2]), slow), compare.SAME)

    def test_two_rounds_say_nothing_about_noise(self):
        self.assertEqual(verdict(run([1.2] * 2), run([2.0] * 2)), compare.UNCLEAR)

    def test_what_only_one_run_measured_is_counted_not_compared(self):
        old = run([1.2] * 4)
        changes, alone = compare.compare(old, old + rounds("tgt", [3.0] * 4))
        self.assertEqual(([c.target for c in changes], alone), (["sluice"], 1))


class ProgramTest(unittest.TestCase):
    def compared(self, old, new, *options):
        with tempfile.TemporaryDirectory() as d:
            for name, content in (("old", old), ("new", new)):
                os.mkdir(os.path.join(d, name))
                with open(os.path.join(d, name, "results.jsonl"), "w") as f:
                    f.writelines(content)
            command = [sys.executable, PROGRAM, f"{d}/old", f"{d}/new/results.jsonl", *options]
            return subprocess.run(command, capture_output=True, text=True)

    @staticmethod
    def lines(records):
        return [json.dumps(r) + "\n" for r in records]

    def test_it_ends_with_1_and_names_what_got_slower(self):
        done = self.compared(self.lines(run([1.2] * 4)), self.lines(run([1.5] * 4)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("## 1 slower", done.stdout)
        self.assertIn("| sluice | 1.20× ±0% | 1.50× ±0% | +25% |", done.stdout)

    def test_it_ends_with_0_where_nothing_did_and_shows_that_on_demand(self):
        same = self.lines(run([1.2] * 4))
        done = self.compared(same, same, "--all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("## 1 same", done.stdout)

    def test_what_is_no_result_is_named_by_its_line(self):
        good = self.lines(run([1.2] * 4))
        for line in ("{\n", "[]\n", '{"target": "sluice"}\n'):
            done = self.compared(good, [good[0], line])
            self.assertEqual(done.returncode, 2, line)
            self.assertIn("results.jsonl:2: no measurement", done.stderr)
        self.assertIn("no measurements", self.compared(good, []).stderr)
        command = [sys.executable, PROGRAM, "/nowhere", "/nowhere"]
        missing = subprocess.run(command, capture_output=True, text=True)
        self.assertIn("name a run's directory", missing.stderr)


if __name__ == "__main__":
    unittest.main()
