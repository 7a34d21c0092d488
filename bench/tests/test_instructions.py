import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

PATH = pathlib.Path(__file__).resolve().parents[1] / "instructions"
loader = importlib.machinery.SourceFileLoader("instructions", str(PATH))
instructions = importlib.util.module_from_spec(importlib.util.spec_from_loader("instructions", loader))
loader.exec_module(instructions)

# f() of a room costs 5 itself and 7 inlined from a header of another room; it calls g(), which costs 100 in a system library.
PROFILE = """version: 1
events: Ir
fl=(1) /build/release/../../gateway/src/iscsi/session.cc
fn=(1) f()
10 5
fi=(2) /build/release/rooms/pdu/pdu/bhs.h
20 7
fe=(1)
cfi=(3) ./string/memmove.S
cfn=(2) g()
calls=1 30
10 100

fl=(3)
fn=(2)
30 100
"""


class CostTest(unittest.TestCase):
    def test_inlined_code_counts_for_its_own_room_and_calls_count_once(self):
        with tempfile.TemporaryDirectory() as scratch:
            profile = pathlib.Path(scratch) / "profile"
            profile.write_text(PROFILE)
            cost = instructions.cost_of(profile)
        self.assertEqual(dict(cost), {("iscsi", "f()"): 5, ("pdu", "f()"): 7, ("-", "g()"): 100})


if __name__ == "__main__":
    unittest.main()
