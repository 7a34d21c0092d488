"""Claims, the functions that show them, and a line for each verdict."""
import contextlib
import pathlib
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'lib'))

CLAIMS = []  # (claim, function)
_one_at_a_time = threading.Lock()


def say(text):
    """A line of its own, whatever else is printed: verdicts are found by the beginning of their line."""
    with _one_at_a_time:
        sys.stdout.write(text.rstrip('\n') + '\n')
        sys.stdout.flush()


def tell(*what):
    """For readers of the tier's log."""
    for line in ' '.join(map(str, what)).splitlines():
        say('    | ' + line)


class Skip(Exception):
    """This machine can't show it; the text says why."""


def claim(text):
    """The function shows that `text` holds, and fails by an exception. It gets a Scene."""
    def register(function):
        CLAIMS.append((text, function))
        return function
    return register


class Scene(contextlib.ExitStack):
    """What one claim needs: a folder, and an end for everything that was begun."""

    def __init__(self, program, folder):
        super().__init__()
        self.program, self.folder = program, pathlib.Path(folder)

    def file(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def keep(self, thing):
        """Closed at the end, whatever happens."""
        return self.enter_context(thing)


def until(condition, seconds, what):
    """Polls a condition that nothing announces."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f'{what}: not within {seconds} s'


def judge(program, words):
    """Shows the claims that contain `words`, each in a folder of its own. True if all held."""
    held = True
    for text, function in [pair for pair in CLAIMS if words in pair[0]]:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='claim.') as folder:
            try:
                with Scene(program, folder) as scene:
                    function(scene)
                say(f'PASS {text} ({time.monotonic() - begun:.2f} s)')
            except Skip as why:
                say(f'SKIP {text}: {why}')
            except Exception as error:  # the verdict, whatever it is
                held = False
                said = ' '.join(str(error).split())
                say(f'FAIL {text}: {type(error).__name__} {said[:400]}')
                tell(traceback.format_exc())
    return held
