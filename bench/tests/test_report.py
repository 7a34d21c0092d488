import json
import os
import tempfile
import unittest

from runner import aims, cells, check, plots, report, stats
from tests.records import READ_4K, rounds

FACTS = {name: "x" for name in check.FACTS} | {"congestion": "cubic"}


def some_records():
    ours = rounds("sluice", [1.3, 1.4])
    return rounds("bare", [1.0, 1.1]) + ours + rounds("tgt", [7.0])


def some_summaries():
    return stats.by_cell(some_records(), cells.from_record)


class MarkdownTest(unittest.TestCase):
    def render(self, facts=FACTS, notes=()):
        found = some_summaries()
        return report.markdown(facts, found, aims.judge(found), notes)

    def test_every_target_stands_in_the_cells_row_with_its_ratio_and_the_aim(self):
        start = "| 4k read QD32 null | 1."
        row = next(l for l in self.render().splitlines() if l.startswith(start))
        self.assertIn("(1.29×)", row)
        self.assertIn("(7.00×)", row)
        self.assertIn("≤ 1.25×", row)

    def test_a_clusters_cell_has_its_ratio_to_the_direct_way_and_its_aim(self):
        cell = cells.Cell("volume", "read", 4096, 32, 1, False)
        records = rounds("direct", [2.0], cell=cell) + rounds("forwarded", [3.0], cell=cell)
        found = stats.by_cell(records, cells.from_record)
        text = report.markdown(FACTS, found, aims.judge(found), [])
        row = next(l for l in text.splitlines() if l.startswith(f"| {cell.name} | 2.00"))
        self.assertIn("3.00 ±0% (1.50×)", row)
        self.assertIn("≤ 2.5×", row)

    def test_every_table_row_has_as_many_columns_as_its_head(self):
        width = None
        for line in self.render(notes=["a note"]).splitlines():
            if not line.startswith("|"):
                width = None
                continue
            columns = line.count("|")
            self.assertEqual(columns, width or columns, line)
            width = columns

    def test_a_congestion_control_that_could_not_be_fixed_is_said(self):
        self.assertNotIn("could not be fixed", self.render())
        self.assertIn("could not be fixed", self.render(FACTS | {"congestion": "bbr"}))

    def test_aims_met_are_counted(self):
        self.assertIn("1 of 2 met", self.render())

    def test_a_run_without_our_target_still_reports(self):
        found = stats.by_cell(rounds("bare", [1.0]), cells.from_record)
        text = report.markdown(FACTS, found, aims.judge(found), [])
        self.assertIn("Nothing to judge", text)


class OutputTest(unittest.TestCase):
    def write(self, directory, records):
        with open(os.path.join(directory, "results.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in records)
        with open(os.path.join(directory, "facts.json"), "w") as f:
            json.dump(FACTS, f)
        found = some_summaries()
        with open(os.path.join(directory, "report.md"), "w") as f:
            f.write(report.markdown(FACTS, found, aims.judge(found), []))

    def test_a_whole_output_passes(self):
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory, some_records())
            self.assertEqual(check.problems(directory, [("tgt", READ_4K.name)], False), [])

    def test_a_missing_field_target_or_file_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            records = some_records()
            del records[0]["core_steal"]
            del records[1]["latency_us"]["p999"]
            records[2]["client_busy"] = -0.03
            self.write(directory, records)
            found = check.problems(directory, [("istgt", READ_4K.name)], False)
            self.assertEqual(len(found), 4, found)
            os.unlink(os.path.join(directory, "report.md"))
            self.assertTrue(check.problems(directory, [], False))

    @unittest.skipUnless(plots.possible(), "matplotlib is not installed")
    def test_every_plot_is_drawn_in_both_formats(self):
        with tempfile.TemporaryDirectory() as directory:
            plots.draw(some_summaries(), directory)
            self.assertEqual(sorted(os.listdir(directory)), sorted(check.PLOTS))


if __name__ == "__main__":
    unittest.main()
