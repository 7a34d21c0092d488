"""What an operator sees: /metrics, `sluice-gateway sessions` and `luns`, against what really happened."""
import re
import shutil
import subprocess

import iscsi
from chap import ChapSession
from claims import Skip, claim, until
from gateway import ANY_HOST, TARGET, Gateway, one_target, run, volume
from reloading import settled
from stopping import leave

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)')


def samples(text):
    """{(name, frozenset of labels): value}; whatever isn't as the text format says is an error."""
    found, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            name, kind = line.split()[2:]
            assert name not in kinds, f'{name} has two types'
            kinds[name] = kind
        elif line and not line.startswith('# HELP '):
            name, labels, value = SAMPLE.match(line).groups()
            pairs = LABEL.findall(labels or '')
            assert LABEL.sub('', labels or '') == '', line
            key = name, frozenset(pairs)
            assert key not in found, f'twice: {line}'
            found[key] = float(value)
            family = re.sub(r'_(bucket|sum|count)$', '', name)
            assert kinds.get(name) or kinds.get(family) in ('histogram', 'summary'), f'no type: {line}'
            if kinds.get(name) == 'counter':
                assert name.endswith('_total'), line
    return found


class Figures:
    def __init__(self, gateway):
        self.samples = samples(gateway.metrics_text()) | samples(gateway.metrics_text('/metrics/lun-latency'))

    def value(self, name, **labels):
        return self.samples['sluice_gateway_' + name, frozenset(labels.items())]

    def lun(self, name, lun, operation):
        return self.value(name, target=TARGET, lun=str(lun), operation=operation)


def busy_gateway(scene):
    """7 reads of 4 KiB and 5 writes of 16 KiB on LUN 1; 3 reads of 512 bytes on LUN 2; 2 flushes on it."""
    gateway = Gateway(scene, one_target([volume(scene, 1), volume(scene, 2, **{'write-cache': 'on'})]))
    session = settled(gateway.session(), 1, 2)
    for n in range(7):
        session.read(1, n * 8, 8)
    for n in range(5):
        session.write(1, n * 32, bytes([n]) * 16384)
    for n in range(3):
        session.read(2, n, 1)
    for _ in range(2):
        session.synchronize_cache(2)
    session.ping()
    return gateway, session


@claim("/metrics counts each LUN's reads, writes, flushes and their payload to the byte")
def per_lun(scene):
    gateway, _ = busy_gateway(scene)
    now = Figures(gateway)
    expected = {(1, 'read'): (7, 7 * 4096), (1, 'write'): (5, 5 * 16384), (1, 'flush'): (0, None),
                (2, 'read'): (3, 3 * 512), (2, 'write'): (0, 0), (2, 'flush'): (2, None)}
    for (lun, operation), (count, size) in expected.items():
        assert now.lun('lun_operations_total', lun, operation) == count, (lun, operation)
        if size is not None:
            assert now.lun('lun_payload_bytes_total', lun, operation) == size, (lun, operation)
    for lun, operation, count in ((1, 'read', 7), (1, 'write', 5), (2, 'read', 3), (2, 'write', 0)):
        assert now.lun('lun_latency_seconds_count', lun, operation) == count, (lun, operation)
        assert now.lun('lun_service_seconds_total', lun, operation) == now.lun('lun_latency_seconds_sum', lun, operation), (lun, operation)
    assert now.value('lun_size_bytes', target=TARGET, lun='1') == 64 << 20


@claim('/metrics: wire bytes are payload and more, each way; commands and PDUs are all there')
def wire(scene):
    gateway, session = busy_gateway(scene)
    least = 7 * 4096 + 3 * 512 + 48 * (session.cmd_sn + 1)  # headers: commands, login, ping
    until(lambda: Figures(gateway).value('wire_bytes_total', direction='send') >= least, 10, 'all is counted')
    now = Figures(gateway)
    sent, received = (now.value('wire_bytes_total', direction=way) for way in ('send', 'receive'))
    assert now.value('payload_bytes_total', direction='write') == 5 * 16384
    assert now.value('payload_bytes_total', direction='read') >= 7 * 4096 + 3 * 512
    commands = session.cmd_sn - 1
    assert now.value('commands_total') == commands
    assert received >= 5 * 16384 + 48 * (commands + 2) and sent >= least, (received, sent)
    assert received <= 5 * 16384 + 48 * (commands + 2) + 1024, 'more than headers, payload and the login'
    assert now.value('pdus_total', direction='receive') == commands + 2
    assert (now.value('connections'), now.value('sessions', type='normal')) == (1, 1)


@claim('/metrics counts logins by how they ended, and sessions that come and go')
def logins(scene):
    known, chap = 'iqn.2026-11.dev.sluice:known', 'iqn.2026-11.dev.sluice:chap'
    secret = {'user': 'alice', 'secret': 'correct-horse-1'}
    hosts = [{'initiators': [known]}, {'initiators': [chap], 'chap': secret}]
    gateway = Gateway(scene, one_target([volume(scene, 1)], hosts))

    def refused(status, log_in):
        try:
            log_in().close()
        except iscsi.LoginFailed as refusal:
            assert refusal.status == status, f'{refusal.status:04x}'
        else:
            raise AssertionError(f'a login that should end with {status:04x}')

    def plain(target=TARGET, **who):
        return iscsi.Session(gateway.portal, target, **who)

    for _ in range(2):
        plain(initiator=known).close()
    for _ in range(3):
        refused(0x0201, lambda: ChapSession(gateway.portal, TARGET, 'alice', 'wrong-secret', initiator=chap))
    for _ in range(4):
        refused(0x0201, lambda: plain(initiator='iqn.2026-11.dev.sluice:stranger'))  # as one with a wrong secret
    for _ in range(5):
        refused(0x0203, lambda: plain(TARGET + '-nowhere', initiator=known))
    plain(None, initiator=known).close()
    now = Figures(gateway)
    expected = {'success': 3, 'authentication-failure': 7, 'not-found': 5}
    for (name, labels), value in now.samples.items():
        if name == 'sluice_gateway_logins_total':
            assert value == expected.get(dict(labels)['result'], 0), (labels, value)
    assert now.value('sessions_opened_total', type='normal') == 2
    assert now.value('sessions_opened_total', type='discovery') == 1
    until(lambda: Figures(gateway).value('connections') == 0, 10, 'all connections are gone')
    assert Figures(gateway).value('sessions', type='normal') == 0


@claim('/metrics keeps to the text format: every sample has a type, none comes twice, counters end in _total')
def text_format(scene):
    gateway, _ = busy_gateway(scene)
    found = Figures(gateway).samples
    assert len({name for name, _ in found}) >= 30, 'hardly any metric is there'
    for (name, labels), value in found.items():
        assert value >= 0 or not name.startswith('sluice_'), (name, labels, value)
    reads = {('lun', '1'), ('operation', 'read')}
    buckets = [(float(dict(labels)['le']), value) for (name, labels), value in found.items()
               if name.endswith('lun_latency_seconds_bucket') and reads <= labels]
    counts = [value for _, value in sorted(buckets)]
    assert counts == sorted(counts) and counts[-1] == 7, counts


@claim('promtool finds nothing to complain about in /metrics')
def promtool(scene):
    if not shutil.which('promtool'):
        raise Skip('promtool is not installed')
    gateway, _ = busy_gateway(scene)
    for path in ('/metrics', '/metrics/lun-latency'):
        done = subprocess.run(['promtool', 'check', 'metrics'], input=gateway.metrics_text(path), text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, path + done.stderr + done.stdout


ODD = {'HeaderDigest': 'CRC32C', 'DataDigest': 'CRC32C', 'InitialR2T': 'Yes', 'ImmediateData': 'No',
       'MaxRecvDataSegmentLength': 12288, 'MaxBurstLength': 98304, 'FirstBurstLength': 20480,
       'MaxOutstandingR2T': 3, 'DefaultTime2Wait': 5, 'DefaultTime2Retain': 0}
PLAIN = {'HeaderDigest': 'None', 'DataDigest': 'None', 'InitialR2T': 'No', 'ImmediateData': 'Yes',
         'MaxRecvDataSegmentLength': 65536, 'MaxBurstLength': 262144, 'FirstBurstLength': 65536,
         'MaxOutstandingR2T': 1, 'DefaultTime2Wait': 2, 'DefaultTime2Retain': 0}


def what_was_negotiated(session, offered):
    """As the session itself knows it: the target's answers, and what the initiator declared."""
    expected = {key: session.agreed[key] for key in offered if key in session.agreed}
    del expected['MaxRecvDataSegmentLength']  # each side declares its own
    expected['TargetMaxRecvDataSegmentLength'] = session.agreed['MaxRecvDataSegmentLength']
    expected['InitiatorMaxRecvDataSegmentLength'] = str(offered['MaxRecvDataSegmentLength'])
    assert len(expected) >= 8, expected
    return expected


@claim('`sessions`, table and --json, tells what each session has negotiated, who it is and what it did')
def sessions(scene):
    strange = 'iqn.2026-11.dev.sluice:strange'
    hosts = [{'initiators': [strange], 'chap': {'user': 'alice', 'secret': 'correct-horse-1'},
              'mutual': {'user': 'store', 'secret': 'battery-staple-2'}, 'read-only': 'on'}, *ANY_HOST]
    gateway = Gateway(scene, one_target([volume(scene, 1)], hosts))
    odd = scene.keep(ChapSession(gateway.portal, TARGET, 'alice', 'correct-horse-1', 'battery-staple-2',
                                 initiator=strange, **ODD))
    plain = gateway.session(**PLAIN)
    assert odd.header_digest and odd.data_digest and not plain.header_digest
    settled(odd, 1).read(1, 0, 64)
    settled(plain, 1).write(1, 0, bytes(8192))
    shown = {entry['initiator']: entry for entry in gateway.ask_json('sessions')}
    assert set(shown) == {strange, iscsi.INITIATOR}, shown
    table = gateway.ask('sessions')
    for name, session, offered in ((strange, odd, ODD), (iscsi.INITIATOR, plain, PLAIN)):
        entry = shown[name]
        for key, value in what_was_negotiated(session, offered).items():
            assert str(entry['negotiated'][key]) == value, (key, entry['negotiated'][key], value)
        assert entry['isid'] == session.isid.hex()
        assert entry['initiator_address'] == '%s:%d' % session.socket.getsockname()
        assert entry['target_address'] == gateway.portal
        assert (entry['target'], entry['type']) == (TARGET, 'Normal')
        assert entry['exp_cmd_sn'] == session.cmd_sn and entry['max_cmd_sn'] >= session.cmd_sn
        in_table(table, entry)
    assert shown[iscsi.INITIATOR]['data_out_bytes'] == 8192
    assert shown[strange]['data_in_bytes'] >= 64 * 512
    access = [shown[name][key] for name in (strange, iscsi.INITIATOR)
              for key in ('auth_method', 'auth_user', 'mutual_auth', 'read_only')]
    assert access == ['CHAP', 'alice', True, True, 'None', '', False, False], access


def in_table(table, entry):
    """The session's line in each of the two tables, found by its TSIH, has what the JSON has."""
    who, what = ([line for line in part.splitlines() if line] for part in table.split('\n\n', 1))
    line = next(line for line in who[1:] if line.split()[0] == str(entry['tsih']))
    for value in (entry['initiator'], entry['isid'], entry['target'], entry['initiator_address']):
        assert value in line.split(), (value, line)
    line = next(line for line in what[1:] if line.split()[0] == str(entry['tsih']))
    assert dict(zip(what[0].split()[1:], line.split()[1:])) == {
        key: str(value) for key, value in entry['negotiated'].items()}, line


@claim('`sessions` forgets a session when it logs out, and says so when there is none')
def no_sessions(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = gateway.session()
    assert len(gateway.ask_json('sessions')) == 1
    leave(session)
    until(lambda: gateway.ask_json('sessions') == [], 10, 'the session is forgotten')
    assert 'no sessions' in gateway.ask('sessions')


@claim('`luns`, table and --json, tells size, cache, nexuses and figures as they are')
def luns(scene):
    gateway, session = busy_gateway(scene)
    one, two = gateway.ask_json('luns')
    assert (one['lun'], one['target'], one['size_bytes'], one['block_size']) == (1, TARGET, 64 << 20, 512)
    assert one['uuid'] == volume(scene, 1)['uuid']
    assert (one['write_cache'], two['write_cache']) == (False, True)
    assert (one['operations']['read'], one['operations']['write']) == (7, 5)
    assert (one['read_bytes'], one['written_bytes']) == (7 * 4096, 5 * 16384)
    assert (two['operations']['read'], two['operations']['flush'], two['read_bytes']) == (3, 2, 3 * 512)
    assert [(entry['nexuses'], entry['in_flight']) for entry in (one, two)] == [(1, 0), (1, 0)]
    head, first, second = gateway.ask('luns').splitlines()
    assert head.split()[:5] == ['TARGET', 'LUN', 'SIZE', 'BLOCK', 'CACHE']
    assert first.split()[:5] == [TARGET, '1', '64.0MiB', '512', 'off']
    assert '28.0KiB' in first and '80.0KiB' in first
    assert second.split()[:5] == [TARGET, '2', '64.0MiB', '512', 'on'] and '1.5KiB' in second
    leave(session)
    until(lambda: [entry['nexuses'] for entry in gateway.ask_json('luns')] == [0, 0], 10, 'the nexus is gone')


@claim('`sessions` and `luns` without a gateway: exit 1, and the socket that is not served')
def no_gateway(scene):
    for what in ('sessions', 'luns'):
        shown = run(scene, what, '--socket', scene.folder / 'absent.socket', expect=1).stderr
        assert 'no gateway serves' in shown and 'absent.socket' in shown, shown
