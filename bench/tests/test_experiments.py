"""The experiments themselves: what each folder must hold, and that each runs and leaves nothing."""

import glob
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from experiments.frame import drive
from report import lines, study
from runner.setup import ROOT, SHM

PROGRAMS = os.path.join(ROOT, "build/bench/bin/iscsi-load")
GATEWAY = os.path.join(ROOT, "build/bin/sluice-gateway")
COMMON = os.path.join(drive.FOLDER, "frame", "start")


def folder(name, *more):
    return os.path.join(drive.FOLDER, name, *more)


def of_the_common_frame():
    return [n for n in drive.known() if os.path.realpath(folder(n, "run")) == COMMON]


def loop_devices(below):
    done = subprocess.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"],
                          capture_output=True, text=True)  # fmt: skip
    return [path for path in done.stdout.splitlines() if path.startswith(below)]


class FoldersTest(unittest.TestCase):
    def test_each_says_what_it_is_after_and_its_studys_figures_are_whole(self):
        self.assertGreaterEqual(
            set(drive.known()), {"backing-stores", "baseline", "ramp", "sweep"}
        )
        for name in drive.known():
            with self.subTest(name=name):
                with open(folder(name, "README.md")) as f:
                    self.assertRegex(f.readline(), r"^# \w")
                self.assertTrue(study.load(folder(name)))
                if os.path.exists(folder(name, "aims.json")):
                    with open(folder(name, "aims.json")) as f:
                        for aim in json.load(f):
                            self.assertEqual(aim.keys(), {"what", "figure", "aim"})


@unittest.skipUnless(os.path.exists(PROGRAMS) and os.path.exists(GATEWAY), "not built")
@unittest.skipUnless(len(os.sched_getaffinity(0)) >= 2, "it needs two cores")
class SmokeTest(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build"), prefix="smoke-")
        self.addCleanup(kept.cleanup)
        self.out = os.path.join(kept.name, "lines.jsonl")
        self.scratch = os.path.join(kept.name, "scratch")

    def start(self, name):
        command = [folder(name, "run"), "--no-build", "--smoke", "--out", self.out,
                   "--scratch", self.scratch, "--bin", os.path.dirname(GATEWAY)]  # fmt: skip
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def written(self):
        if not os.path.exists(self.out):
            return ""
        with open(self.out) as f:
            return f.read()

    def assert_nothing_is_left(self, pid):
        self.assertEqual(os.listdir(self.scratch), [])
        self.assertEqual(glob.glob(f"{SHM}-{pid}.img*"), [])
        self.assertEqual(loop_devices(self.scratch), [])

    def test_each_measures_sluice_and_leaves_nothing(self):
        for name in of_the_common_frame():
            with self.subTest(name=name):
                child = self.start(name)
                _, said = child.communicate(timeout=120)
                self.assertEqual(child.returncode, 0, said)
                found = lines.by_experiment(lines.read(self.out))[1][name]
                self.assertIn("sluice", found.subjects())
                for cell in found.cells.values():
                    if "sluice" in cell:
                        self.assertGreater(cell["sluice"].figure("bytes_per_second").median, 0)
                self.assertTrue(any(c["sluice"].session for c in found.cells.values()))
                self.assert_nothing_is_left(child.pid)

    def test_an_interrupt_in_the_middle_leaves_nothing(self):
        child = self.start("baseline")
        end = time.monotonic() + 60
        while '"sluice"' not in self.written():
            self.assertIsNone(child.poll(), "it ended before it measured")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130)
        self.assert_nothing_is_left(child.pid)

    def test_without_a_gateway_it_says_what_is_needed(self):
        done = subprocess.run(
            [folder("sweep", "run"), "--no-build", "--smoke", "--out", self.out,
             "--bin", self.scratch], capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("sluice-gateway is not built (make build-gateway, or --bin)", done.stderr)


if __name__ == "__main__":
    unittest.main()
