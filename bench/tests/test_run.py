"""What run.py leaves of a run, from made-up records."""

import json
import os
import tempfile
import types
import unittest

import run
from report import build, style
from runner import check
from tests.records import READ_4K, rounds

FACTS = {name: "x" for name in check.FACTS} | {"congestion": "cubic"}


class WriteReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results, self.reports = os.path.join(folder.name, "results"), os.path.join(folder.name, "reports")
        os.mkdir(self.results)
        self.measured = rounds("bare", [1.0, 1.1]) + rounds("sluice", [1.2, 1.3])
        with open(os.path.join(self.results, "results.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in self.measured)

    def write(self):
        more = [{"facts": FACTS}, {"note": "tgt was not measured: it is not installed"}, {"takeover_ms": [100.0]}]
        return run.write_report(types.SimpleNamespace(results=self.results), self.measured, more, self.reports)

    def test_the_results_are_whole_and_the_reports_get_the_same_page(self):
        page = self.write()
        plots = [page.file(p) for p in page.plots()] if style.possible() else []
        self.assertEqual(check.problems(self.results, [("sluice", READ_4K.name)], plots), [])
        self.assertEqual(sorted(os.listdir(self.reports)), sorted(["engine.md", *plots]))

    def test_the_generator_makes_the_same_page_of_the_records_again(self):
        written = self.write().markdown()
        (again,) = build.pages_of([os.path.join(self.results, "results.jsonl")])
        self.assertEqual(again.markdown(), written)
        for words in ("tgt was not measured", "rbd's part of a takeover", "| kernel | x |"):
            self.assertIn(words, written)


class DefaultsTest(unittest.TestCase):
    def test_results_and_reports_are_below_build(self):
        for path in (build.RESULTS, build.REPORTS):
            self.assertTrue(path.startswith(os.path.join(run.ROOT, "build") + os.sep), path)


if __name__ == "__main__":
    unittest.main()
