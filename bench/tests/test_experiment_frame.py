import contextlib
import io
import json
import os
import tempfile
import types
import unittest

from experiments.frame import main, options
from tests import records

CPU = "target_cpu_s_per_command"
SWEEP = main.experiment("sweep")
GROUP = SWEEP.cells((8192,))[0]


class FrameTest(unittest.TestCase):
    def setUp(self):
        self.cleanup = contextlib.ExitStack()
        self.addCleanup(self.cleanup.close)
        self.folder = self.cleanup.enter_context(tempfile.TemporaryDirectory())
        self.out = os.path.join(self.folder, "lines.jsonl")
        args = main.parse_args(["sweep", "--out", self.out, "--scratch", self.folder])
        self.options = options.make_options(args, "cubic", self.cleanup)
        self.cleanup.enter_context(contextlib.redirect_stdout(io.StringIO()))

    def written(self):
        if not os.path.exists(self.out):
            return []
        with open(self.out) as f:
            return [json.loads(text) for text in f]


class OptionsTest(FrameTest):
    def test_lines_are_appended_with_the_experiments_name_and_six_digits(self):
        with open(self.out, "w") as f:
            f.write('{"facts": {}}\n')
        self.options.figures("sluice", {"op": "read"}, 1, {"iops": 1234567.89, CPU: 1.23456789e-6})
        self.assertEqual(self.written()[1], {
            "experiment": "sweep", "subject": "sluice", "parameters": {"op": "read"}, "round": 1,
            "figures": {"iops": 1234570.0, CPU: 1.23457e-6},
        })  # fmt: skip

    def test_a_session_is_told_once_and_again_when_it_changes(self):
        for number, value in enumerate(("No", "No", "Yes"), 1):
            self.options.figures("a", {}, number, {"iops": 1}, session={"InitialR2T": value})
        found = [line.get("session", {}).get("InitialR2T") for line in self.written()]
        self.assertEqual(found, ["No", None, "Yes"])

    def test_an_aim_is_kept_on_its_bound_and_missed_beyond(self):
        for value, bound in ((1.1, "<= 1.1"), (1.11, "<= 1.1"), (1.9, ">= 1.95"), (2, ">= 1.95")):
            self.options.aim("text", value, bound)
        self.assertEqual([line["kept"] for line in self.written()], [True, False, False, True])

    def test_a_round_in_which_no_command_ended_is_told_and_counts_for_nothing(self):
        made = records.record("sluice", 1.0)
        for done in (made, made | {"commands": 0, "target_cpu_us": 0}):
            target = types.SimpleNamespace(
                name="sluice", every=1, measures=lambda _: True, measure=lambda _: dict(done)
            )
            self.options.alternate(GROUP[:1], [target], SWEEP.parameters, rounds=1)
        first, second = self.written()
        self.assertEqual(first["figures"]["iops"], 1e6)
        self.assertIn("a round of sluice", second["skipped"])

    def test_scratch_goes_with_the_run(self):
        self.assertTrue(os.path.isdir(self.options.scratch))
        self.cleanup.pop_all().close()
        self.assertFalse(os.path.exists(self.options.scratch))


class DigestsTest(FrameTest):
    """What is judged of made-up rounds: each pair is what a round costs without and with digests."""

    def judge(self, limits, ours):
        for name, pairs in (("bare", limits), ("sluice", ours)):
            for number, pair in enumerate(pairs, 1):
                for one in GROUP:
                    if one.digests in ("none", "both"):
                        cost = pair[one.digests == "both"]
                        place = SWEEP.parameters(one)
                        self.options.figures(name, place, number, {CPU: cost * 1e-6})
        SWEEP.judge(self.options, [GROUP])
        return [line for line in self.written() if "aim" in line or "skipped" in line]

    def test_what_they_add_is_a_multiple_of_what_they_add_to_the_limit(self):
        (found,) = self.judge([(1.0, 1.2), (2.0, 2.2)], [(3.0, 3.3), (4.0, 4.3)])
        self.assertAlmostEqual(found["value"], 1.5, places=3)
        self.assertFalse(found["kept"])

    def test_rounds_that_disagree_judge_nothing(self):
        (found,) = self.judge([(1.0, 1.1), (2.0, 2.3)], [(3.0, 3.2), (4.0, 4.2)])
        self.assertIn("lost in noise (rounds differ by ±50%)", found["skipped"])

    def test_a_single_round_judges_nothing(self):
        (found,) = self.judge([(1.0, 1.2)], [(3.0, 3.2)])
        self.assertIn("lost in noise", found["skipped"])

    def test_less_than_nothing_is_noise(self):
        (found,) = self.judge([(1.0, 1.2), (1.0, 1.2)], [(3.0, 2.9), (3.0, 2.9)])
        self.assertIn("it isn't above zero", found["skipped"])


if __name__ == "__main__":
    unittest.main()
