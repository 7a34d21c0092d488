import types
import unittest
import unittest.mock

from runner import ceph, cells, targets

SETUP = types.SimpleNamespace(results="/nowhere", gateway="/nowhere/gateway", file="/nowhere/file", ram_file="/nowhere/ram", file_size=1 << 20)
VOLUME = cells.Cell("volume", "read", 4096, 32, 1, False)
ON_DISK = cells.Cell("disk", "write", 4096, 32, 1, False)
FILE = cells.Cell("file", "read", 4096, 32, 1, False)


class WaysToAVolumeTest(unittest.TestCase):
    def ways(self, owner):
        owners = {"cached": owner, "durable": 1 - owner}
        gateways = types.SimpleNamespace(owners=owners, ports=[10, 11], pids=[70, 71])
        return targets.Direct(SETUP, gateways), targets.Forwarded(SETUP, gateways)

    def test_direct_goes_to_the_owner_and_forwarded_to_the_other_gateway(self):
        for owner, ports in ((0, ["10", "11"]), (1, ["11", "10"])):
            args = [way.client_args(VOLUME) for way in self.ways(owner)]
            self.assertEqual([a[a.index("--port") + 1] for a in args], ports)

    def test_each_volume_has_its_own_owner_and_lun(self):
        args = [[way.client_args(c) for c in (VOLUME, ON_DISK)] for way in self.ways(0)]
        ports = [[a[a.index("--port") + 1] for a in way] for way in args]
        self.assertEqual(ports, [["10", "11"], ["11", "10"]])
        self.assertEqual([[a[a.index("--lun") + 1] for a in way] for way in args], [["0", "1"]] * 2)

    def test_the_cpu_of_both_gateways_counts_on_either_way(self):
        self.assertEqual([way.pids for way in self.ways(0)], [[70, 71], [70, 71]])

    def test_only_they_measure_a_clusters_cells_and_nothing_else(self):
        for way in self.ways(0):
            self.assertEqual(
                [way.measures(c) for c in (VOLUME, ON_DISK, FILE)], [True, True, False]
            )
        for kind in (targets.Bare, targets.Sluice, targets.Tgt):
            self.assertEqual((kind(SETUP).measures(VOLUME), kind(SETUP).measures(FILE)), (False, True))


class StoresTest(unittest.TestCase):
    def test_the_gateway_serves_ram_by_its_memory_lun_and_a_file_from_the_page_cache(self):
        self.assertEqual(targets.Sluice(SETUP).backends(), {
            0: "null:1GiB", 1: "memory:1048576", 2: "file:/nowhere/file,size=1048576,io=buffered,write-cache=on"})

    def test_every_target_without_a_cluster_has_a_lun_of_each_store(self):
        for kind in (targets.Sluice, targets.Tgt):
            self.assertEqual(sorted(kind.luns), sorted(targets.STORES))
        self.assertIn("/nowhere/ram", targets.Tgt(SETUP).backings()[targets.Tgt.luns["memory"]])


class ImageTest(unittest.TestCase):
    def test_only_librbd_and_the_gateway_over_it_measure_an_image_of_ceph(self):
        image = cells.Cell("rbd", "read", 4096, 32, 1, False)
        shared = types.SimpleNamespace()
        for kind in (targets.Librbd, targets.Rbd):
            self.assertEqual(
                [kind(SETUP, shared).measures(c) for c in (image, VOLUME, FILE)],
                [True, False, False],
            )
        for kind in (targets.Bare, targets.Sluice, targets.Tgt):
            self.assertFalse(kind(SETUP).measures(image))


class AvailableTest(unittest.TestCase):
    def test_without_ceph_its_targets_are_left_out_with_the_reason(self):
        with unittest.mock.patch.object(ceph, "missing", return_value=["ceph-osd"]):
            chosen, reasons = targets.available(SETUP, ["bare", "librbd", "rbd"])
        self.assertEqual([t.name for t in chosen], ["bare"])
        self.assertEqual(sorted(reasons), ["librbd", "rbd"])
        self.assertIn("ceph-osd", reasons["rbd"])

    def test_without_a_control_plane_the_cluster_is_left_out_with_the_reason(self):
        chosen, reasons = targets.available(SETUP, ["bare", "direct", "forwarded"])
        self.assertEqual([t.name for t in chosen], ["bare"])
        self.assertIn("sluice-controlplane", reasons["direct"])
        self.assertEqual(sorted(reasons), ["direct", "forwarded"])


if __name__ == "__main__":
    unittest.main()
