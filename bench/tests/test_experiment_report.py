import contextlib
import io
import json
import os
import tempfile
import unittest
import unittest.mock

from experiments.frame import counters, drive, load
from report import build, lines, rules, sections, study, style, units

CPU = "target_cpu_s_per_command"
READ = {"op": "read", "size": 4096}


def line(subject="sluice", round_number=1, parameters=None, **figures):
    return {"experiment": "made-up", "subject": subject, "parameters": parameters or READ,
            "round": round_number, "figures": figures}  # fmt: skip


def experiment(*measured):
    return lines.by_experiment(measured)[1]["made-up"]


def series(subject, *by_round, noise=()):
    found = lines.Series(READ)
    for number, value in enumerate(by_round, 1):
        found.by_round[number] = {CPU: value, "noise_share": 0.5 if number in noise else 0.0}
    return found


class LinesTest(unittest.TestCase):
    def test_a_broken_line_is_named_with_its_place_and_what_is_wrong(self):
        no_number = line(iops="many")
        for text, words in (
            ("{", "no JSON"),
            ("[1]", "an object was expected"),
            ('{"experiment": "x", "round": 1}', "lacks figures, parameters, subject"),
            (json.dumps(no_number), "the figure iops is no number: 'many'"),
        ):
            with self.subTest(text=text), self.assertRaises(lines.LineError) as caught:
                lines.parse(text, "file:7")
            self.assertIn("file:7", str(caught.exception))
            self.assertIn(words, str(caught.exception))

    def test_a_second_line_of_the_same_round_adds_figures(self):
        found = experiment(line(iops=10), line(cpu_ratio=2.0))
        (cell,) = found.cells.values()
        self.assertEqual(cell["sluice"].by_round, {1: {"iops": 10, "cpu_ratio": 2.0}})

    def test_cells_differ_by_parameters_in_whatever_order(self):
        turned = dict(reversed(READ.items()))
        self.assertEqual(len(experiment(line(iops=1), line(parameters=turned, iops=2)).cells), 1)
        other = READ | {"size": 8192}
        self.assertEqual(len(experiment(line(iops=1), line(parameters=other, iops=2)).cells), 2)

    def test_noisy_rounds_count_only_where_fewer_than_two_others_are_left(self):
        self.assertEqual(series("a", 1.0, 2.0, 90.0, noise=(3,)).figure(CPU).high, 2.0)
        self.assertEqual(series("a", 1.0, 90.0, noise=(2,)).figure(CPU).high, 90.0)

    def test_a_ratio_is_the_median_of_the_rounds_own_ratios(self):
        ours, limit = series("a", 2.0, 30.0, 3.0), series("b", 1.0, 10.0, 2.0)
        found = lines.ratio(ours, limit, CPU)
        self.assertEqual((found.low, found.median, found.high), (1.5, 2.0, 3.0))
        self.assertIsNone(lines.ratio(ours, None, CPU))

    def test_a_round_that_only_one_took_part_in_gives_no_ratio(self):
        self.assertEqual(lines.ratio(series("a", 2.0, 9.0), series("b", 1.0), CPU).median, 2.0)


class StudyTest(unittest.TestCase):
    def cells(self, *places):
        return experiment(*(line(parameters=p, iops=1) for p in places)).cells

    def match(self, theirs, *places):
        cell = study.matching({"parameters": theirs}, self.cells(*places))
        return cell["sluice"].parameters if cell else None

    def test_a_contradiction_is_no_match_and_what_one_side_does_not_name_is_none(self):
        self.assertIsNone(self.match({"op": "write", "size": 4096}, READ))
        self.assertEqual(self.match({"op": "read", "scheduler": "cfq"}, READ), READ)
        self.assertIsNone(self.match({"scheduler": "cfq"}, READ))

    def test_the_cell_that_shares_most_is_taken(self):
        vague = {"op": "read"}
        self.assertEqual(self.match(READ, vague, READ), READ)

    def test_an_entry_that_is_not_whole_is_refused_by_its_number(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "study.json"), "w") as f:
                json.dump([{"study": "s", "subject": "x", "parameters": {}}], f)
            with self.assertRaisesRegex(lines.LineError, "entry 0 lacks figures"):
                study.load(folder)


class UnitsTest(unittest.TestCase):
    def test_a_figures_name_tells_its_unit(self):
        for figure, value, text in (
            (CPU, 1.264e-6, "1.26 µs"),
            ("bytes_per_second", 2.7e9, "2,700 MB/s"),
            ("latency_p99_s", 0.0123, "12.3 ms"),
            ("client_busy_share", 0.985, "98%"),
            ("cpu_ratio_to_none", 1.499, "1.50×"),
            ("iops", 318000, "318,000"),
            ("session_bytes", 4.2e6, "4.20 MB"),
            ("clients", 8, "8"),
        ):
            with self.subTest(figure=figure):
                self.assertEqual(units.text(figure, value), text)

    def test_parameters_read_as_words(self):
        given = {"op": "read", "size": 131072, "luns": 5, "direct": True, "sync": False}
        self.assertEqual(units.parameters(given), "read 128k luns 5 direct")


class CountersTest(unittest.TestCase):
    def test_bytes_are_found_among_other_metrics(self):
        text = (
            "# HELP sluice_gateway_wire_bytes_total Bytes.\n"
            'sluice_gateway_wire_bytes_total{direction="send"} 2.5e+06\n'
            'sluice_gateway_payload_bytes_total{direction="read"} 2000\n'
            "sluice_gateway_commands_total 7\n"
        )
        self.assertEqual(
            counters.parse_metrics(text), {"wire_send": 2.5e6, "payload_read": 2000.0}
        )

    def test_loopback_has_received_what_was_sent_there(self):
        self.assertGreaterEqual(counters.interface(), 0)
        self.assertEqual(counters.grown({"a": 5, "b": 2}, {"a": 3}), {"a": 2, "b": 2})


class LoadTest(unittest.TestCase):
    def test_each_kind_of_digests_is_asked_for_by_itself(self):
        for header, data, name, flags in (
            (True, False, "header", ["--header-digest"]),
            (False, True, "data", ["--data-digest"]),
            (True, True, "both", ["--header-digest", "--data-digest"]),
            (False, False, "none", []),
        ):
            one = load.Load("null", "read", 4096, 16, header_digest=header, data_digest=data)
            self.assertEqual(one.digests, name)
            self.assertEqual([a for a in one.more_args if a.endswith("digest")], flags)


class ReportTest(unittest.TestCase):
    MEASURED = [
        {"facts": {"cpu": "A Processor", "commit": "abc1234"}},
        {"experiment": "made-up", "facts": {"congestion": "cubic"}},
        line("bare", 1, **{CPU: 1e-6}),
        line("bare", 2, **{CPU: 2e-6}),
        line("sluice", 1, **{CPU: 1.5e-6}) | {"session": {"InitialR2T": "No"}},
        line("sluice", 2, **{CPU: 2.4e-6}),
        line("istgt", 1, **{CPU: 17e-6}) | {"notes": "page cache"},
        {"experiment": "made-up", "aim": "low", "value": 1.35, "bound": "<= 1.4", "kept": True},
        {"experiment": "made-up", "aim": "lower", "value": 1.35, "bound": "<= 1.1", "kept": False},
        {"experiment": "made-up", "skipped": "tgt is not installed"},
    ]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name
        self.path = os.path.join(self.out, "experiments.jsonl")
        self.write(*self.MEASURED)

    def write(self, *objects):
        with open(self.path, "w") as f:
            f.writelines(json.dumps(o) + "\n" for o in objects)

    def report(self):
        with open(build.build([self.path], self.out)[0]) as f:
            return f.read()

    def test_subjects_stand_side_by_side_with_spread_and_ratio_to_the_limit(self):
        row = next(r for r in self.report().splitlines() if r.startswith("| read 4k | 1.50"))
        self.assertEqual(
            row, "| read 4k | 1.50 µs ±33% | 1.95 µs ±23% (1.35×) | 17.0 µs (17.00×) |"
        )

    def test_a_busy_machine_is_told_where_most_measurements_were_noisy(self):
        for noisy, named in ((1, False), (2, True)):
            self.write(*(line(round_number=r, iops=7, noise_share=0.5 if r <= noisy else 0.0)
                         for r in (1, 2, 3)))  # fmt: skip
            text = self.report()
            self.assertEqual(f"The cores were busy: {noisy} of 3 measurements" in text, named)

    def test_what_all_cells_share_is_said_once(self):
        self.write(*(line(parameters={"op": op, "block_size": 512}, iops=7) for op in "ab"))
        text = self.report()
        self.assertIn("All cells: block size 512.", text)
        self.assertIn("| a | 7 |", text)
        self.assertIn("| b | 7 |", text)

    def test_aims_machine_session_notes_and_what_is_missing_are_told(self):
        text = self.report()
        for words in ("Aims: 1 of 2 kept", "| low | 1.35 | <= 1.4 | kept |", "**missed**",
                      "| cpu | A Processor |", "| commit | abc1234 |", "| InitialR2T | No |",
                      "istgt: page cache", "not measured: tgt is not installed",
                      "congestion cubic"):  # fmt: skip
            self.assertIn(words, text)

    def test_a_studys_subjects_of_one_cell_share_a_row_with_ours(self):
        entries = [
            {"study": "s", "subject": name, "parameters": READ, "figures": {CPU: value}}
            for name, value in (("IET", 20e-6), ("STGT", 30e-6))
        ]
        found = experiment(*self.MEASURED[1:-3])
        text = sections.beside_study(found, entries)
        self.assertIn("IET 20.0 µs; STGT 30.0 µs | 1.50 µs ±33% | 1.95 µs ±23% | 17.0 µs |", text)

    def test_the_page_refers_to_its_plots(self):
        written = [os.path.basename(p) for p in build.build([self.path], self.out)]
        self.assertEqual(written, ["experiment-made-up.md", *(["experiment-made-up.svg"] if style.possible() else [])])
        for name in written[1:]:
            self.assertIn(f"]({name})", self.report())

    @unittest.skipUnless(style.possible(), "matplotlib is not installed (.ci/deps plots)")
    def test_plots_of_bars_or_lines_keep_the_rules(self):
        found = experiment(*self.MEASURED[1:])
        settings = [{}, {"figure": CPU, "kind": "lines", "x": "size", "series": ["op"], "x_unit": "B"},
                    {"plots": [{"figure": CPU, "panels": ["op"], "bound": {"value": 9, "text": "aim ≤ 9"}}, {"figure": CPU}]}]  # fmt: skip
        for one, count in zip(settings, (1, 1, 2)):
            plots = sections.plots(found, one)
            self.assertEqual(len(plots), count)
            for plot in plots:
                self.assertEqual(rules.problems(plot.draw()), [])

    def test_a_plot_shows_the_cells_that_its_settings_name(self):
        found = experiment(*(line(parameters=READ | {"depth": d}, iops=d) for d in (1, 8)))
        self.assertEqual(len(sections.plots(found, {"figure": "iops", "only": {"depth": [8]}})), 1)
        self.assertEqual(sections.plots(found, {"figure": "iops", "only": {"depth": [9]}}), [])
        self.assertEqual(sections.plots(found, {"figure": "never_measured_s"}), [])

    def test_every_plot_json_has_a_title_and_known_keys(self):
        for name in drive.known():
            settings = sections.plot_settings(os.path.join(drive.FOLDER, name))
            for one in settings["plots"]:
                with self.subTest(name=name):
                    self.assertTrue(one["title"])
                    self.assertLessEqual(one.keys(), {"figure", "title", "kind", "x", "x_unit", "log_x", "panels", "series", "only", "names",
                                                      "hide", "columns", "shared", "bound"})  # fmt: skip

    def test_nothing_measured_is_an_error_and_no_empty_report(self):
        self.write({"facts": {}})
        with self.assertRaisesRegex(lines.LineError, "nothing was measured"):
            self.report()


class DriveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "experiments")
        self.out = os.path.join(folder.name, "out")
        patch = unittest.mock.patch.object(drive, "FOLDER", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def add(self, name, script):
        os.makedirs(os.path.join(self.folder, name))
        path = os.path.join(self.folder, name, "run")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def drive(self, *args):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = drive.main([*args, "--out", self.out])
        texts = []
        for name in sorted(os.listdir(self.out)):
            if name.endswith(".md"):
                with open(os.path.join(self.out, name)) as f:
                    texts.append(f.read())
        return status, "\n".join(texts)

    def test_one_that_cannot_run_is_told_with_its_reason_and_the_others_go_on(self):
        self.add("cannot", "echo 'it takes a moon' >&2; exit 2\n")
        self.add("two-words", f"echo '{json.dumps(line(iops=5000))}' >>\"$2\"\n")
        status, text = self.drive()
        self.assertEqual(status, 0)
        self.assertIn("not measured: it takes a moon", text)
        self.assertIn("| read 4k | 5,000 |", text)

    def test_none_starts_when_the_budget_is_used_up(self):
        for name in ("a", "b"):
            self.add(name, f"echo '{json.dumps(line(iops=5000))}' >>\"$2\"\n")
        _, text = self.drive("--budget", "1e-9")
        self.assertEqual(text.count("not measured: the budget of 0 s was used up"), 2)
        self.assertNotIn("5,000", text)

    def test_one_that_breaks_fails_the_run(self):
        self.add("broken", "exit 1\n")
        self.assertEqual(self.drive()[0], 1)

    def test_an_unknown_name_is_refused_with_the_known_ones(self):
        self.add("known", "exit 0\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            drive.parse_args(["unknown"])
        self.assertIn("no experiment unknown; there are known", said.getvalue())


if __name__ == "__main__":
    unittest.main()
