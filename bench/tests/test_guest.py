import os
import tempfile
import unittest
from unittest import mock

from experiments.frame import guest
from experiments.frame.stopping import CannotRun


class GuestTest(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.root = kept.name
        self.begun = os.path.join(self.root, "begun")

    def boot(self, script):
        path = os.path.join(self.root, "tests/guest/boot")
        os.makedirs(os.path.dirname(path))
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        with mock.patch.object(guest, "ROOT", self.root):
            guest.boot(["-n", 2], ["script", 7], self.begun, {"GIVEN": "word"})

    def test_a_boot_is_given_options_script_and_environment(self):
        self.boot(f'echo "$* $GIVEN" >{self.root}/said')
        with open(f"{self.root}/said") as f:
            self.assertEqual(f.read(), "-n 2 script 7 word\n")

    def test_without_a_guest_that_begins_it_cannot_run_here(self):
        with self.assertRaisesRegex(CannotRun, "status 125.*QEMU"):
            self.boot("exit 125")

    def test_a_guest_that_ends_later_is_broken(self):
        with self.assertRaisesRegex(RuntimeError, "ended with 125"):
            self.boot(f"touch {self.begun}; exit 125")

    @mock.patch("os.geteuid", return_value=0)
    @mock.patch("os.path.exists", side_effect=lambda path: path != "/no/gateway")
    def test_what_is_missing_is_named_with_what_makes_it(self, *_):
        with mock.patch("shutil.which", side_effect=lambda name: name != "tc"):
            guest.check(())
            with self.assertRaisesRegex(CannotRun, "tc is missing .*deps guest faults"):
                guest.check(("tc",))
            with self.assertRaisesRegex(CannotRun, "/no/gateway is missing: make build"):
                guest.check((), ("/no/gateway", "make build"))

    @mock.patch("os.geteuid", return_value=1000)
    def test_it_needs_root(self, _):
        with self.assertRaisesRegex(CannotRun, "root"):
            guest.check(())


if __name__ == "__main__":
    unittest.main()
