import json
import os
import tempfile
import unittest

from report import engine, rules, style
from runner import cells, check
from tests.records import READ_4K, rounds

FACTS = {name: "x" for name in check.FACTS} | {"congestion": "cubic"}


def some_records():
    ours = rounds("sluice", [1.3, 1.4])
    return rounds("bare", [1.0, 1.1]) + ours + rounds("tgt", [7.0])


def page(records, facts=FACTS, notes=()):
    return engine.page([*records, {"facts": facts}, *({"note": note} for note in notes)])


class MarkdownTest(unittest.TestCase):
    def render(self, facts=FACTS, notes=()):
        return page(some_records(), facts, notes).markdown()

    def test_every_target_stands_in_the_cells_row_with_its_ratio_and_the_aim(self):
        start = "| 4k read QD32 null | 1."
        row = next(l for l in self.render().splitlines() if l.startswith(start))
        self.assertIn("(1.29×)", row)
        self.assertIn("(7.00×)", row)
        self.assertIn("≤ 1.25×", row)

    def test_a_clusters_cell_has_its_ratio_to_the_direct_way_and_its_aim(self):
        cell = cells.Cell("volume", "read", 4096, 32, 1, False)
        records = rounds("direct", [2.0], cell=cell) + rounds("forwarded", [3.0], cell=cell)
        text = page(records).markdown()
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
        self.assertNotIn("could not fix it", self.render())
        self.assertIn("could not fix it", self.render(FACTS | {"congestion": "bbr"}))

    def test_aims_met_are_counted(self):
        self.assertIn("1 of 2 met", self.render())

    def test_a_run_without_our_target_still_reports(self):
        self.assertIn("Nothing to judge", page(rounds("bare", [1.0])).markdown())

    def test_takeovers_are_among_the_aims(self):
        text = page([*some_records(), {"takeover_ms": [100.0, 300.0, 350.0]}]).markdown()
        self.assertIn("| rbd's part of a takeover | 3 takeovers, 100 to 350 ms, median | 200 ms | 300 ms | 1.50× | ≤ 1× | **missed** |", text)


@unittest.skipUnless(style.possible(), "matplotlib is not installed (.ci/deps plots)")
class PlotsTest(unittest.TestCase):
    def test_plots_of_a_run_keep_the_rules(self):
        forwarded = cells.Cell("volume", "read", 4096, 32, 1, False)
        records = some_records() + rounds("direct", [2.0, 2.1], cell=forwarded) + rounds("forwarded", [3.0, 3.2], cell=forwarded)
        found = page(records)
        self.assertEqual([found.file(p) for p in found.plots()], ["engine-cpu.svg", "engine-ratio.svg"])
        for plot in found.plots():
            self.assertEqual(rules.problems(plot.draw()), [])

    def test_of_many_cells_the_first_are_shown_and_the_rest_is_stated(self):
        records = []
        for group in cells.full()[:30]:
            for cell in group.cells:
                records += rounds("bare", [1.0], cell=cell) + rounds("sluice", [1.2], cell=cell)
        figure = page(records).plots()[1].draw()
        self.assertEqual(rules.problems(figure), [])
        self.assertRegex(figure.axes[0].get_title(loc="left"), r"the first 14 of \d+ cells")


class OutputTest(unittest.TestCase):
    def write(self, directory, records):
        with open(os.path.join(directory, "results.jsonl"), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in records)
            f.write(json.dumps({"facts": FACTS}) + "\n")
        with open(os.path.join(directory, "engine.md"), "w") as f:
            f.write(page(some_records()).markdown())

    def test_a_whole_output_passes(self):
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory, some_records())
            self.assertEqual(check.problems(directory, [("tgt", READ_4K.name)]), [])

    def test_a_missing_field_target_or_file_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            records = some_records()
            del records[0]["core_steal"]
            del records[1]["latency_us"]["p999"]
            records[2]["client_busy"] = -0.03
            self.write(directory, records)
            found = check.problems(directory, [("istgt", READ_4K.name)])
            self.assertEqual(len(found), 4, found)
            self.assertEqual(len(check.problems(directory, [], ["engine-cpu.svg"])), 1)
            os.unlink(os.path.join(directory, "engine.md"))
            self.assertTrue(check.problems(directory, []))


if __name__ == "__main__":
    unittest.main()
