"""The gateway's sources: which file an include names, and which files are tests or only support them.

A header that at least one file includes, and that only tests, benchmarks and other test support include, is test support. Tests end in
_test.cc, benchmarks in _bench.cc. Names of headers do not matter."""
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROOM = re.compile(r'sluice_room\((\w+)([^)]*)\)')
TESTS = ('_test.cc', '_bench.cc')


def code_lines(text):
    """The lines of a C++ or Go text without blank lines and lines of comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith('//'))


class Sources:
    """The sources below a folder: the text of each by its path, the rooms, and the paths of test support."""

    def __init__(self, src):
        self.src = src
        self.rooms = {}  # name of a room: its folder, and the other arguments of sluice_room()
        for cmake in sorted(src.rglob('CMakeLists.txt')):
            for name, rest in ROOM.findall(re.sub(r'#.*', '', cmake.read_text())):
                self.rooms[name] = cmake.parent, rest
        paths = sorted([*src.rglob('*.h'), *src.rglob('*.cc')])
        self.text = {path.relative_to(src).as_posix(): path.read_text() for path in paths}
        self.test_support = self.find_test_support()

    def resolve(self, include):
        room, _, rest = include.partition('/')
        if rest and room in self.rooms:
            return (self.rooms[room][0] / rest).relative_to(self.src).as_posix()
        return include

    def find_test_support(self):
        includers = {path: set() for path in self.text}
        for path, text in self.text.items():
            for include in INCLUDE.findall(text):
                includers.get(self.resolve(include), set()).add(path)
        found = {path for path in self.text if path.endswith(TESTS)}
        while more := {path for path, by in includers.items() if by <= found and by} - found:
            found |= more
        return found
