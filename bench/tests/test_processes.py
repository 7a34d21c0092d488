import os
import subprocess
import sys
import unittest

from runner import processes


class ProcessTest(unittest.TestCase):
    def test_a_child_that_ignores_the_request_is_made_to_leave(self):
        code = (
            "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "print('up', flush=True); signal.pause()"
        )
        core = min(os.sched_getaffinity(0))
        child = processes.spawn([sys.executable, "-c", code], core, stdout=subprocess.PIPE)
        with child.stdout:
            self.assertEqual(child.stdout.readline(), b"up\n")
        self.assertEqual(os.sched_getaffinity(child.pid), {core})
        processes.stop(child, patience=0.01)
        self.assertEqual(child.returncode, -9)

    def test_stopping_what_is_gone_or_never_was_is_harmless(self):
        child = processes.spawn(["true"], min(os.sched_getaffinity(0)))
        child.wait()
        processes.stop(child)
        processes.stop(None)

    def test_waiting_for_a_program_that_died_ends(self):
        child = processes.spawn(["false"], min(os.sched_getaffinity(0)))
        self.assertFalse(processes.wait_listening(child, processes.free_port()))
        child.wait()


if __name__ == "__main__":
    unittest.main()
