"""What every attack needs: the gateway under attack, a witness on another session, and a verdict."""
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'lib'))
import iscsi  # noqa: E402

WITNESS = 'iqn.2026-11.dev.sluice:witness'
ATTACKER = 'iqn.2026-11.dev.sluice:attacker'
LUN, OTHER_LUN, NULL_LUN = 1, 2, 3
ATTACKS = []  # (claim, function)


def attack(claim):
    """The claim is what has to hold; the function fails by an exception. A witness is watched meanwhile."""
    def register(function):
        ATTACKS.append((claim, function))
        return function
    return register


class Arena:
    def __init__(self, portal, target, pid, login_timeout):
        self.portal, self.target, self.pid, self.login_timeout = portal, target, pid, login_timeout

    def session(self, **offers):
        return iscsi.Session(self.portal, self.target, initiator=ATTACKER, **offers)

    def connection(self, **options):
        return iscsi.Connection(self.portal, **options)

    def memory_mib(self):
        status = pathlib.Path(f'/proc/{self.pid}/status').read_text()
        return int(next(l for l in status.splitlines() if l.startswith('VmRSS:')).split()[1]) / 1024

    def descriptors(self):
        return sum(1 for _ in pathlib.Path(f'/proc/{self.pid}/fd').iterdir())

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f'{what}: not within {seconds} s'
            time.sleep(0.05)

    def memory_grows_at_most(self, mib):
        """Checks at its end that the gateway's memory has grown by no more than that."""
        return _Growth(self, mib)


class _Growth:
    def __init__(self, arena, mib):
        self.arena, self.mib = arena, mib

    def __enter__(self):
        self.before = self.arena.memory_mib()
        return self

    def check(self):
        grown = self.arena.memory_mib() - self.before
        assert grown <= self.mib, f'memory grew by {grown:.0f} MiB, allowed are {self.mib}'

    def __exit__(self, kind, *_):
        if kind is None:
            self.check()


class Witness:
    """A well-behaved session. It writes and reads back; an answer that takes over 3 s counts as harm."""

    def __init__(self, arena):
        self.session = iscsi.Session(arena.portal, arena.target, initiator=WITNESS, timeout=3.0)
        self.turn = 0

    def works(self):
        self.turn += 1
        data = bytes([self.turn % 251 + 1]) * 8192
        self.session.write(OTHER_LUN, 64, data)
        assert self.session.read(OTHER_LUN, 64, 16) == data, 'the witness read something else than it wrote'
        self.session.ping()


def fight(arena, chosen):
    """Runs the attacks one by one; prints a result line for each. True if all claims held."""
    witness = Witness(arena)
    held = True
    for claim, function in chosen:
        begun = time.monotonic()
        try:
            arena.witness = witness
            witness.works()
            function(arena)
            witness.works()
            fresh = arena.session()
            fresh.ping()
            fresh.log_out()
            fresh.close()
            print(f'PASS {claim} ({time.monotonic() - begun:.2f} s)', flush=True)
        except Exception as error:  # the verdict, whatever it is
            held = False
            print(f'FAIL {claim}: {type(error).__name__} {error}', flush=True)
            print('    | ' + traceback.format_exc().replace('\n', '\n    | '), flush=True)
            try:
                witness = Witness(arena)
            except Exception as gone:
                print(f'FAIL the gateway does not serve any more: {type(gone).__name__} {gone}', flush=True)
                return False
    return held
