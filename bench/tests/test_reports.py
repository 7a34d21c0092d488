"""The reports of the cluster benchmarks, from made-up records: their figures, and the rules of plots."""

import contextlib
import io
import json
import os
import tempfile
import unittest

from report import build, failover, isolation, placement, rules, scale, style

HEAD = {"facts": {"date": "2026-11-24", "cpu": "A Processor"}}


def plots_keep_the_rules(case, page):
    case.assertTrue(page.plots())
    if style.possible():
        for plot in page.plots():
            with case.subTest(plot=page.file(plot)):
                case.assertEqual(rules.problems(plot.draw()), [])


def stalled(kind, luns, *stalls, **more):
    record = {"kind": kind, "luns": luns, "struck": 9, "stallsSeconds": list(stalls), "gapSeconds": max(stalls, default=0),
              "longestSeconds": 0, "allSeconds": max(stalls, default=0), "errors": 0, "retries": 0}  # fmt: skip
    if kind == failover.NODE_LOSS:
        record["beyondDetectionSeconds"] = record["gapSeconds"] - 5
    return record | more


class FailoverTest(unittest.TestCase):
    RECORDS = [
        HEAD, stalled("kill", 1, 0.2), stalled("kill", 1, 1.9), stalled("kill", 1, 0.3), stalled("kill", 1000, 2.1, 0.3),
        stalled("kill, a Linux host", 1, 2.9), stalled("kill, a Linux host", 1, 3.1),
        stalled("planned move", 1, 0.1, struck=1, allSeconds=0.2, errors=1), stalled("node loss", 1, 7), stalled("node loss", 1000, 8),
    ]  # fmt: skip

    def test_each_group_is_judged_by_its_aim(self):
        text = failover.page(self.RECORDS).markdown()
        for row in (
            "| kill | 1 | 9 | 3 | 0.300 | 1.900 | 1.900 | 0.300 | 1.900 | 0.000 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | yes |",
            "| kill | 1000 | 9 | 1 | 0.300 | 2.100 | 2.100 | 2.100 | 2.100 | 0.000 | 0.000 | 0 | 0 | median ≤ 0.5 s, p99 ≤ 2 s, no errors | **no** |",
            "| kill, a Linux host | 1 | 9 | 2 | 2.900 | 3.100 | 3.100 | 2.900 | 3.100 | 0.000 | 0.000 | 0 | 0 | all ≤ 3 s, no errors | **no** |",
            "| planned move | 1 | 1 | 1 | 0.100 | 0.100 | 0.100 | 0.200 | 0.200 | 0.000 | 0.000 | 1 | 0 | p99 ≤ 0.3 s, no errors | **no** |",
            "beyond the initiator's detection | yes |",
            "| kill | 1, 1000 | 0.300, 0.300 | 1.00× | 0.300, 2.100 | 7.00× | yes |",
            "| node loss | 1, 1000 | 7.000, 8.000 | 1.14× | 7.000, 8.000 | 1.14× | yes |",
            "| date | 2026-11-24 |",
        ):
            self.assertIn(row, text)
        self.assertNotIn("Storage's part", text)

    def test_every_kind_of_fault_has_a_panel_that_keeps_the_rules(self):
        page = failover.page(self.RECORDS)
        plots_keep_the_rules(self, page)
        if style.possible():
            self.assertEqual(len(page.plots()[0].draw().axes), 4)

    def test_quantiles_are_by_nearest_rank(self):
        values = [float(i + 1) for i in range(100)]
        for share, want in ((0.5, 50), (0.99, 99), (1, 100), (0, 1)):
            self.assertEqual(failover.quantile(values, share), want)

    def test_a_fault_costs_the_cpu_time_beyond_calm_for_each_volume(self):
        record = stalled("kill", 1000, 0.1, struck=100, cpuSeconds={"cp-1": 0.3, "gw-2": 0.1, "gw-3": 0.1},
                         calmCPUSeconds={"cp-1": 0.1, "gw-2": 0.05, "gw-3": 0.2})  # fmt: skip
        self.assertAlmostEqual(failover.costs(record)["control plane"], 2)
        self.assertAlmostEqual(failover.costs(record)["gateways"], 0.5)
        self.assertIn("| kill | 1000 | 100 | 2.000 | 0.500 | 0.000 |", failover.page([record]).markdown())

    def test_takeovers_are_judged_with_one_lun(self):
        text = failover.page([stalled("kill", n, 0.1, takeoversSeconds=[0.1, 0.3, 0.25]) for n in (1, 100)]).markdown()
        self.assertIn("| kill | 1 | 3 | 0.250 | 0.300 | 0.300 | median ≤ 0.2 s | **no** |", text)
        self.assertIn("| kill | 100 | 3 | 0.250 | 0.300 | 0.300 |  |  |", text)


class ScaleTest(unittest.TestCase):
    def records(self, **run):
        def memory(stage, luns, sessions, kib):
            return {"what": "memory", "stage": stage, "gateways": 4, "luns": luns, "sessions": sessions, "rssBytes": kib << 11, "pssBytes": kib << 10}

        def death(luns, *times):
            return {"what": "death", "luns": luns} | dict(zip(scale.TIMES, times))

        return [HEAD, {"what": "run", "luns": 11, "sessions": 10, "gateways": 4} | run,
                memory(scale.EMPTY, 1, 0, 1000), memory(scale.FULL, 11, 0, 1080), memory(scale.LOGGED_IN, 11, 10, 1580),
                memory(scale.USED, 11, 10, 1680), death(3, 0.5, 0.1, 0.2), death(3, 0.9, 0.2, 0.3), death(2, 0.6, 0.3, 0.4)]  # fmt: skip

    def test_a_lun_counts_in_each_gateway_and_a_session_in_its_own(self):
        text = scale.page(self.records(madeSeconds=6.4, loginSeconds=0.2, usedLUNs=4)).markdown()
        for words in ("# 11 LUNs, 10 sessions, 4 gateways", "after 6.4 s", "after 0.2 s", "| a LUN, in each gateway that exports it | 2.0 |",
                      "| a session, logged in | 50.0 |", "| a session that has used 4 LUNs | 60.0 |", "its LUNs | 0.600 | 0.900 |",
                      "portals are open | 0.200 | 0.300 |", "| date | 2026-11-24 |"):  # fmt: skip
            self.assertIn(words, text)
        self.assertNotIn("early", text)

    def test_a_run_that_failed_reports_its_figures_and_why_it_ended(self):
        self.assertIn("**The run ended early**: gw-3 is gone\n", scale.page(self.records(failed="gw-3 is gone\nits log")).markdown())
        text = scale.page(self.records()[:3]).markdown()
        self.assertNotIn("a session", text.split("## Memory")[1])

    def test_plots_keep_the_rules(self):
        plots_keep_the_rules(self, scale.page(self.records()))
        plots_keep_the_rules(self, scale.page(self.records()[:3]))


class PlacementTest(unittest.TestCase):
    STEP = {"size": {"gateways": 10, "racks": 2, "spines": 1, "targets": 5, "volumesPerTarget": 2, "hosts": 5}, "seed": 1, "seconds": 1.0,
            "plans": 1, "pathMoves": 0, "ownerMoves": 0, "forced": 0, "rebalancing": 0, "pathFairShare": 10, "ownerFairShare": 10,
            "ownerMaxOverMean": 1.05, "ownerMinOverMean": 0.9, "pathMaxOverMean": 1.1, "ownerHops": 2.5, "randomHops": 3.0,
            "nearestHops": 2.5, "redundantPermille": 1000, "problems": 0}  # fmt: skip

    def records(self, moves=20):
        return [HEAD, self.STEP | {"step": "nothing placed yet"}, self.STEP | {"step": "nothing changes"},
                self.STEP | {"step": "some die", "ownerMoves": moves},
                self.STEP | {"step": "small clusters", "clusters": 3, "meanRatio": 1.2, "worstRatio": 2.2}]  # fmt: skip

    def test_aims_are_counted_and_a_missed_one_is_named(self):
        self.assertIn("# Placement: 9 of 9 aims met", placement.page(self.records()).markdown())
        text = placement.page(self.records(moves=40)).markdown()
        self.assertIn("# Placement: 8 of 9 aims met", text)
        self.assertIn("| some die: moves over the fair share | 2 × | ≤ 1.25 × | **missed** |", text)

    def test_plots_keep_the_rules_and_count_switches_in_integers(self):
        page = placement.page(self.records())
        plots_keep_the_rules(self, page)
        if style.possible():
            axis = page.plots()[1].draw().axes[0]
            self.assertEqual([t for t in axis.get_xticks() if t != int(t)], [])


def isolated(subject, repetition, calm, stalled):
    """In ms. The last bin of each stall has the latency during stalls."""
    bins = [{"from": i / 10, "count": 9, "p50Seconds": calm / 2000, "maxSeconds": calm / 500,
             "p99Seconds": (stalled if 20 <= i < 30 else calm) / 1000} for i in range(50)]  # fmt: skip
    phases = {name: {"count": 9, "p50Seconds": p99 / 2000, "p99Seconds": p99 / 1000, "maxSeconds": p99 / 500}
              for name, p99 in (("calm", calm), ("stalled", stalled))}  # fmt: skip
    return {"isolationSubject": subject, "repetition": repetition, "stalls": [[2.0, 3.0]], "p99Ratio": stalled / calm, "bins": bins,
            "errors": 0, "held": 32, **phases}  # fmt: skip


class IsolationTest(unittest.TestCase):
    RECORDS = [
        HEAD, isolated("tgt", 1, 1, 40), isolated("sluice", 1, 0.4, 0.5), isolated("sluice", 2, 0.4, 0.4), isolated("tgt", 2, 2, 20),
        isolated("tgt", 3, 1, 30), isolated("sluice", 3, 0.2, 0.3),
    ]  # fmt: skip

    def test_ratios_are_medians_of_the_repetitions_own_ratios(self):
        text = isolation.page(self.RECORDS).markdown()
        for row in (
            "| sluice | 3 | 1.25 (1.00 to 1.50) | 32 | 0 |",
            "| tgt | 3 | 30.00 (10.00 to 40.00) | 32 | 0 |",
            "| sluice | during a stall | 0.200 (0.150 to 0.250) | 0.400 (0.300 to 0.500) | 0.800 (0.600 to 1.000) | 9 |",
            "| date | 2026-11-24 |",
        ):
            self.assertIn(row, text)

    def test_each_target_has_a_panel_with_its_stalls_that_keeps_the_rules(self):
        page = isolation.page(self.RECORDS)
        plots_keep_the_rules(self, page)
        if style.possible():
            axes = page.plots()[0].draw().axes
            self.assertEqual([[c.get_label() for c in axis.collections] for axis in axes], [["_shade"], ["_shade"]])
            self.assertIn("repetition 3 of 3", axes[1]._left_title.get_text())


class BuildTest(unittest.TestCase):
    def build(self, *records, name=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "records.jsonl")
        with open(path, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in records)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            written = build.build([path], folder.name, name)
        return [os.path.basename(p) for p in written], said.getvalue()

    def test_records_tell_their_benchmark_and_a_page_has_a_stable_name(self):
        plots = ["failover.svg"] if style.possible() else []
        self.assertEqual(self.build(*FailoverTest.RECORDS)[0], ["failover.md", *plots])
        self.assertEqual(self.build(*FailoverTest.RECORDS, name="failover-rbd")[0][0], "failover-rbd.md")
        self.assertEqual(self.build(*IsolationTest.RECORDS)[0][0], "isolation.md")
        self.assertEqual(self.build(*ScaleTest().records())[0][0], "scale.md")
        self.assertEqual(self.build(*PlacementTest().records())[0][0], "placement.md")

    def test_no_plot_of_a_report_breaks_a_rule_of_files(self):
        if style.possible():
            self.assertEqual(self.build(*FailoverTest.RECORDS)[1], "")
            self.assertEqual(self.build(*IsolationTest.RECORDS)[1], "")

    def test_facts_alone_are_no_report(self):
        with self.assertRaisesRegex(Exception, "nothing was measured"):
            self.build(HEAD)


if __name__ == "__main__":
    unittest.main()
