import json
import os
import subprocess
import tempfile
import unittest

from runner import processes

BIN = os.path.join(os.path.dirname(__file__), "../../build/bench/bin")
CORE = min(os.sched_getaffinity(0))


def program(name):
    return os.path.abspath(os.path.join(BIN, name))


@unittest.skipUnless(os.path.exists(program("bare-echo")), "the programs are not built")
class ProgramsTest(unittest.TestCase):
    def setUp(self):
        self.file = tempfile.NamedTemporaryFile(prefix="sluice-bench-test-")
        self.addCleanup(self.file.close)
        self.file.truncate(8 << 20)

    def start(self, *args):
        port = processes.free_port()
        command = [program("bare-echo"), "--port", str(port), "--memory", "8M", "--file", self.file.name, *args]
        echo = processes.spawn(command, CORE, stdout=subprocess.PIPE)
        self.addCleanup(echo.stdout.close)
        self.addCleanup(processes.stop, echo)
        self.assertTrue(processes.wait_listening(echo, port))
        return port, json.loads(echo.stdout.readline())

    def load(self, port, *args, op="mix"):
        command = [program("iscsi-load"), "--protocol", "bare", "--port", str(port), "--verify",
                   "--span", "8M", "--warmup", "0", "--seconds", "0.2", "--op", op]  # fmt: skip
        done = subprocess.run([*command, *args], capture_output=True, text=True, timeout=60)
        self.assertTrue(done.stdout, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_data_verifies_through_every_way_to_receive_and_store(self):
        for receive in ("incremental", "provided", "plain"):
            port, said = self.start("--receive", receive)
            self.assertIn(said["congestion"], ("cubic", "reno"))
            for extra in (
                ("--store", "memory", "--digests", "--sessions", "3"),
                ("--store", "memory", "--header-digest"),
                ("--store", "file", "--data-digest"),
                ("--store", "file", "--size", "256k", "--depth", "5"),
            ):
                with self.subTest(receive=receive, extra=extra):
                    code, record = self.load(port, *extra)
                    self.assertEqual((code, record["errors"], record["first_error"]), (0, 0, ""))
                    self.assertGreater(record["filled"], 0)

    def test_contents_last_from_one_run_to_the_next(self):
        port, _ = self.start()
        for store in ("memory", "file"):
            self.assertEqual(self.load(port, "--store", store)[0], 0)
            self.assertEqual(self.load(port, "--store", store, "--no-fill", op="read")[0], 0)

    def test_one_wrong_byte_is_found(self):
        port, _ = self.start()
        self.assertEqual(self.load(port, "--store", "file")[0], 0)
        self.file.seek(12345)
        byte = self.file.read(1)
        self.file.seek(12345)
        self.file.write(bytes([byte[0] ^ 1]))
        self.file.flush()
        sequential = ("--no-fill", "--pattern", "sequential", "--size", "1M")
        code, record = self.load(port, "--store", "file", *sequential, op="read")
        self.assertEqual(code, 2)
        self.assertGreater(record["mismatches"], 0)
        self.assertEqual(record["first_error"], "wrong data at byte 12344 of the LUN")

    def test_another_seed_is_other_data(self):
        port, _ = self.start()
        self.assertEqual(self.load(port, "--store", "memory")[0], 0)
        other = ("--no-fill", "--seed", "2")
        code, record = self.load(port, "--store", "memory", *other, op="read")
        self.assertEqual(code, 2)
        self.assertGreater(record["mismatches"], 0)


if __name__ == "__main__":
    unittest.main()
