"""A gateway process, its log and what it tells a service manager.

Nothing here waits by sleeping: a gateway says by sd_notify(3) when it serves and when a reload is over, log
lines wake who waits for them, and its end is waited for."""
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import urllib.request

import iscsi
from claims import tell

TARGET = 'iqn.2026-11.dev.sluice:operations'
ANY_HOST = [{'initiators': ['*']}]
PATIENCE = 30  # seconds; what isn't there by then won't come
_ports = itertools.count(3260)


class Ended(Exception):
    """The gateway ended instead of doing what was waited for."""


class Log:
    """Standard error, line by line as it comes; also to this process's own output."""

    def __init__(self, stream):
        self.lines, self._more, self._over = [], threading.Condition(), False
        self._thread = threading.Thread(target=self._follow, args=(stream,), daemon=True)
        self._thread.start()

    def _follow(self, stream):
        for line in stream:
            tell(line)
            with self._more:
                self.lines.append(line.rstrip('\n'))
                self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def text(self):
        with self._more:
            return '\n'.join(self.lines)

    def all(self):
        """Everything, once the gateway has ended."""
        self._thread.join(PATIENCE)
        return self.text()

    def wait_for(self, *words):
        """The first line with all these words."""
        def found():
            return next((line for line in self.lines if all(word in line for word in words)), None)
        with self._more:
            self._more.wait_for(lambda: found() or self._over, PATIENCE)
            line = found()
        assert line, f'no line of the log has {words}'
        return line


class Gateway:
    """Started with a configuration (a dict; JSON is YAML, too); returns once it serves.
    `faults`: SUFFIX=FAULTS of the backends whose path ends in SUFFIX, by the program faulty-gateway."""

    def __init__(self, scene, configuration, environment=None, level='debug', format='text', before=(), faults=None):
        self.scene, self.port, self.metrics_port = scene, next(_ports), next(_ports)
        self.portal, self.admin = f'127.0.0.1:{self.port}', scene.folder / f'{self.port}.socket'
        self.file = scene.folder / f'{self.port}.yaml'
        self.write(configuration)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(scene.folder / f'{self.port}.manager'))
        self.manager.settimeout(0.5)  # then it is asked whether the process is there still
        program = scene.program
        if faults:
            program = pathlib.Path(program).resolve().with_name('faulty-gateway')
            environment = (environment or {}) | {'SLUICE_BACKEND_FAULTS': faults}
        self.process = subprocess.Popen(
            [*before, program, '--config', str(self.file), '--log-level', level, '--log-format', format],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {'NOTIFY_SOCKET': self.manager.getsockname()} | (environment or {}))
        scene.callback(self.end)
        self.log = Log(self.process.stderr)
        self.notified('READY=1')

    def write(self, configuration):
        """The configuration that the next start or reload finds; a str is taken as it is."""
        if not isinstance(configuration, str):
            configuration = json.dumps(self.completed(configuration), indent=1)
        self.file.write_text(configuration)
        self.file.chmod(0o600)

    def completed(self, configuration):
        return {'listen': [{'address': self.portal}], 'metrics': f'127.0.0.1:{self.metrics_port}',
                'admin-socket': str(self.admin), 'reactors': 2,
                'state-directory': str(self.scene.folder / f'{self.port}.state')} | configuration

    def notified(self, word):
        """Waits for the message to the service manager that has this word: its lines, by name."""
        for _ in range(2 * PATIENCE):
            try:
                message = self.manager.recv(4096).decode()
            except TimeoutError:
                if self.process.poll() is not None:
                    raise Ended(f'status {self.process.returncode}: {self.log.all()}') from None
                continue
            if word in message.split('\n'):
                return dict(line.split('=', 1) for line in message.split('\n'))
        raise AssertionError(f'never notified: {word}')

    def signal(self, number):
        self.process.send_signal(number)

    def reload(self, configuration):
        """Writes it, sends SIGHUP, returns what the gateway says when it is done."""
        self.write(configuration)
        self.signal(signal.SIGHUP)
        self.notified('RELOADING=1')
        return self.notified('READY=1')['STATUS']

    def must_reload(self, configuration):
        status = self.reload(configuration)
        assert status == 'reloaded', f'{status}: {self.log.text()[-400:]}'

    def wait(self):
        return self.process.wait(PATIENCE)

    def stop(self):
        """SIGTERM; the exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.manager.close()

    def session(self, **options):
        return self.scene.keep(iscsi.Session(self.portal, TARGET, **options))

    def ask(self, *words):
        """`sluice-gateway sessions` or `luns`, as an operator calls it: what it prints."""
        return run(self.scene, *words, '--socket', self.admin, expect=0).stdout

    def ask_json(self, what):
        return json.loads(self.ask(what, '--json'))

    def metrics_text(self, path='/metrics'):
        address = f'http://127.0.0.1:{self.metrics_port}{path}'
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return answer.read().decode()


def run(scene, *words, expect, before=()):
    """Runs the program to its end: a CompletedProcess whose status is the expected one."""
    done = subprocess.run([*before, scene.program, *map(str, words)], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=PATIENCE)
    tell(*words, '->', done.returncode, done.stdout, done.stderr)
    assert done.returncode == expect, f'status {done.returncode}, expected {expect}: {done.stderr}'
    return done


def one_target(luns, hosts=None):
    return {'targets': [{'iqn': TARGET, 'hosts': hosts or ANY_HOST, 'luns': luns}]}


def volume(scene, number, mib=64, **more):
    return {'id': number, 'uuid': f'00000000-0000-4000-8000-{number:012}', 'backend': 'file',
            'path': str(pathlib.Path(scene.folder, f'{number}.img')), 'size': f'{mib}MiB'} | more
