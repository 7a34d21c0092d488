"""How a gateway starts, or why it doesn't: exit codes 0, 1 (it can't), 2 (the configuration is wrong)."""
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

from claims import claim, tell
from gateway import ANY_HOST, PATIENCE, TARGET, Gateway, one_target, run, volume

UNDER_SECCOMP = pathlib.Path(__file__).with_name('under_seccomp')
DISABLED = '/proc/sys/kernel/io_uring_disabled'

GOOD = f'''listen:
- address: 127.0.0.1:3260
targets:
- iqn: {TARGET}
  hosts: [{{initiators: ["*"]}}]
  luns:
  - {{id: 0, backend: memory, size: 64MiB}}
'''


def refused(scene, text, *words):
    """The configuration is refused, by --check and by a start alike, and the message has all these words."""
    path = scene.file('gateway.yaml', text)
    for how in ([], ['--check']):
        done = run(scene, '--config', path, *how, expect=2)
        for word in words:
            assert word in done.stderr, f'no {word!r} in: {done.stderr}'


def fails_to_start(scene, words, before=(), arguments=(), **options):
    """A start of a good configuration ends with 1, and the log has all these words."""
    path = scene.file('gateway.yaml', GOOD)
    done = subprocess.run([*before, scene.program, '--config', path, '--admin-socket', 'off', '--state-dir',
                           scene.folder, *arguments], text=True, capture_output=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, **options)
    tell(done.stderr)
    assert done.returncode == 1, f'status {done.returncode}: {done.stderr}'
    failed = next((line for line in done.stderr.splitlines() if 'start failed' in line), '')
    for word in words:
        assert word in failed, f'no {word!r} in {failed!r}; all: {done.stderr}'


@claim('--check takes a good file: exit 0, and a summary of what it means')
def good_file(scene):
    done = run(scene, '--check', '--config', scene.file('gateway.yaml', GOOD), expect=0)
    for word in ('listen 127.0.0.1:3260', f'target {TARGET}', 'host any', 'LUN 0 memory, 64MiB'):
        assert word in done.stdout, f'no {word!r} in: {done.stdout}'
    assert not done.stderr, done.stderr


@claim('an unknown key: exit 2, with its line and the key that was meant')
def unknown_key(scene):
    refused(scene, GOOD.replace('size: 64MiB', 'size: 64MiB, write-cahce: on'),
            'gateway.yaml:7:', "'write-cahce'", "did you mean 'write-cache'?")
    refused(scene, 'reactor: 2\n' + GOOD, 'gateway.yaml:1:', "did you mean 'reactors'?")


@claim('a bad size: exit 2, with line, key and what is allowed')
def bad_size(scene):
    for size in ('64MB', '100B', '-1', '64 elephants'):
        refused(scene, GOOD.replace('64MiB', size),
                'gateway.yaml:7:', 'targets[0].luns[0].size', '512B to 8EiB')
    done = run(scene, '--target', TARGET, '--lun', '0=memory:64MB', expect=2)
    assert '--lun 0=memory:64MB' in done.stderr, done.stderr


@claim('every fault of a file is reported at once')
def all_faults(scene):
    wrong = 'reactor: 2\n' + GOOD.replace('64MiB', '64MB').replace('3260', '99999')
    refused(scene, wrong, "'reactor'", '99999', '64MB')


@claim('a configuration that is not there: exit 2, with its name')
def missing_configuration(scene):
    path = scene.folder / 'nowhere.yaml'
    for how in ([], ['--check']):
        done = run(scene, '--config', path, *how, expect=2)
        assert str(path) in done.stderr and 'No such file' in done.stderr, done.stderr


@claim('wrong usage: exit 2, and says what to give')
def wrong_usage(scene):
    assert 'give --config FILE' in run(scene, expect=2).stderr
    assert '--nonsense' in run(scene, '--nonsense', expect=2).stderr


@claim("a volume's file that is missing and may not be made: exit 1, with LUN and path")
def missing_volume(scene):
    path = scene.folder / 'nowhere.img'
    text = json.dumps(one_target([volume(scene, 3, path=str(path), create='off')]))
    done = run(scene, '--config', scene.file('gateway.yaml', text), '--listen', '127.0.0.1:0', expect=2)
    assert '--config' in done.stderr, done.stderr  # the two ways to say things don't mix
    done = run(scene, '--config', scene.file('gateway.yaml', text), '--admin-socket', 'off', '--state-dir',
               scene.folder, expect=1)
    for word in ('LUN 3', str(path), "doesn't exist"):
        assert word in done.stderr, done.stderr


@claim('a port in use: exit 1, names the portal and says what to do')
def port_in_use(scene):
    taken = scene.keep(socket.create_server(('127.0.0.1', 3260), reuse_port=False))
    fails_to_start(scene, ["can't bind portal 127.0.0.1:3260", 'in use', 'another program listens'])
    taken.close()


@claim('an address of no interface: exit 1, names the portal and says what is wrong')
def foreign_address(scene):
    text = json.dumps({'listen': [{'address': '192.0.2.77:3260'}]} | one_target([]))
    done = run(scene, '--config', scene.file('gateway.yaml', text), '--admin-socket', 'off', '--state-dir',
               scene.folder, expect=1)
    for word in ("can't bind portal 192.0.2.77:3260", 'no interface of this machine'):
        assert word in done.stderr, done.stderr


@claim('io_uring refused by a seccomp filter: exit 1, names the filter and the calls to allow')
def refused_by_seccomp(scene):
    for error in ('EPERM', 'ENOSYS'):
        allow = 'io_uring_setup, io_uring_enter and io_uring_register'
        fails_to_start(scene, ['io_uring', 'seccomp filter', allow], before=[UNDER_SECCOMP, error])


@claim('as in a pod of the operator (no root, no capability, a read-only root, the chart\'s seccomp profile) a gateway serves and ends')
def as_in_a_pod(scene):
    disk, home = scene.folder / 'disk', pathlib.Path(__file__)
    disk.write_bytes(bytes(1 << 20))
    profile = home.parents[2] / 'charts/sluice/files/seccomp-gateway.json'
    luns = [{'id': 0, 'backend': 'memory', 'size': '64MiB'}, {'id': 1, 'backend': 'file', 'path': str(disk)}]
    for private in (scene.folder.parent, scene.folder.parent.parent):
        if private.stat().st_mode & 0o7777 == 0o700:
            private.chmod(0o711)  # another user has to get at the folder
    gateway = Gateway(scene, {'targets': [{'iqn': TARGET, 'hosts': ANY_HOST, 'luns': luns}]},
                      before=['unshare', '--mount', home.with_name('as_in_a_pod'), scene.folder, profile])
    state = dict(line.split(':\t', 1) for line in pathlib.Path(f'/proc/{gateway.process.pid}/status').read_text().splitlines())
    assert state['Uid'].split() == ['65532'] * 4, state['Uid']
    assert int(state['CapEff'], 16) == int(state['CapBnd'], 16) == 0, state
    assert (state['NoNewPrivs'], state['Seccomp']) == ('1', '2'), state
    with gateway.session() as session:
        for lun in (0, 1):
            session.write(lun, 0, b'x' * 4096)
            assert session.read(lun, 0, 8) == b'x' * 4096
    assert disk.read_bytes()[:4096] == b'x' * 4096
    assert gateway.stop() == 0


@claim('io_uring switched off by the kernel: exit 1, names the sysctl and the remedy')
def switched_off(scene):
    # The sysctl holds for the whole machine, so only what the gateway sees of it is changed.
    for value, remedy in (('2', 'sysctl kernel.io_uring_disabled=0'), ('1', 'kernel.io_uring_group')):
        shown = scene.file('disabled', value + '\n')
        subprocess.run(['mount', '--bind', shown, DISABLED], check=True)
        scene.callback(subprocess.run, ['umount', DISABLED])
        fails_to_start(scene, [f'kernel.io_uring_disabled={value}', remedy], before=[UNDER_SECCOMP, 'EPERM'])


@claim('io_uring without the memory it may lock: exit 1, names RLIMIT_MEMLOCK and how to raise it')
def too_little_locked_memory(scene):
    # Kernels since 5.12 charge rings to the cgroup, so the answer of an older one is played.
    fails_to_start(scene, ['RLIMIT_MEMLOCK', 'LimitMEMLOCK=infinity'], before=[UNDER_SECCOMP, 'ENOMEM'])


@claim('too few file descriptors: exit 1, names RLIMIT_NOFILE')
def too_few_descriptors(scene):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
    fails_to_start(scene, ['RLIMIT_NOFILE'], preexec_fn=few, arguments=['--reactors', '8'])


@claim('a volume that another gateway serves: exit 1, and that one goes on')
def volume_in_use(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = gateway.session()
    session.write(1, 0, b'mine'.ljust(512))
    text = json.dumps({'listen': [{'address': '127.0.0.1:0'}]} | one_target([volume(scene, 1)]))
    done = run(scene, '--config', scene.file('other.yaml', text), '--admin-socket', 'off', '--state-dir',
               scene.folder / 'other', expect=1)
    assert 'LUN 1' in done.stderr and 'lock' in done.stderr, done.stderr
    assert session.read(1, 0, 1).startswith(b'mine')


@claim('the service manager hears READY=1 once the gateway serves, RELOADING=1 with its time, STOPPING=1')
def tells_the_manager(scene):
    configuration = one_target([volume(scene, 1)])
    gateway = Gateway(scene, configuration)  # returns at READY=1
    gateway.session().ping()
    gateway.write(configuration)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    gateway.signal(signal.SIGHUP)
    assert int(gateway.notified('RELOADING=1')['MONOTONIC_USEC']) >= before
    assert gateway.notified('READY=1')['STATUS'] == 'reloaded'
    gateway.signal(signal.SIGTERM)
    gateway.notified('STOPPING=1')
    assert gateway.wait() == 0


@claim('nothing is left after a stop: no admin socket, no lock on a volume, no port')
def nothing_left(scene):
    for number in (signal.SIGTERM, signal.SIGINT):
        gateway = Gateway(scene, one_target([volume(scene, 1)]))
        gateway.signal(number)
        assert gateway.wait() == 0
        assert not gateway.admin.exists(), 'the admin socket is still there'
        socket.create_server(('127.0.0.1', gateway.port)).close()
