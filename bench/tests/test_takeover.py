import unittest

from runner import takeover

LOG = """2026-11-22T02:00:00.100000Z info    starting version=0.1.0 pid=1
2026-11-22T02:00:00.200000Z info    connected to Ceph cluster=x user=client.gateway client=y
2026-11-22T02:00:00.210000Z warning who had the image is gone, and is fenced image=rbd/bench
2026-11-22T02:00:00.271000Z info    listening portals=127.0.0.1:1 reactors=1 targets=1
"""


class TakeoverTest(unittest.TestCase):
    def test_the_part_of_rbd_begins_when_connected_and_ends_when_serving(self):
        self.assertAlmostEqual(takeover.part_of_rbd(LOG), 71)

    def test_a_log_that_never_serves_is_an_error(self):
        with self.assertRaises(ValueError):
            takeover.part_of_rbd(LOG[: LOG.index("2026-11-22T02:00:00.271")])

    def test_the_median_is_held_to_its_bound(self):
        for median, met in ((199, True), (201, False)):
            self.assertEqual(takeover.verdict([1, median, 900]).met, met)


if __name__ == "__main__":
    unittest.main()
