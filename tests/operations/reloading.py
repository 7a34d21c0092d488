"""SIGHUP while there are sessions: LUNs appear, grow and disappear, and hosts get unit attentions."""
import os
import signal
import struct
import threading

import iscsi
from chap import ChapSession
from claims import claim
from gateway import ANY_HOST, PATIENCE, TARGET, Gateway, one_target, volume

INVENTORY_CHANGED = (6, 0x3f, 0x0e)  # REPORTED LUNS DATA HAS CHANGED (SPC-5 annex F)
CAPACITY_CHANGED = (6, 0x2a, 0x09)   # CAPACITY DATA HAS CHANGED
TEST_UNIT_READY = bytes(6)
REPORT_LUNS = struct.pack('>B5xIxx', 0xa0, 4096)
READ_CAPACITY = struct.pack('>BB8xIxx', 0x9e, 0x10, 32)
MIB = 1 << 20


def sense(answer):
    return answer[2] & 0xf, answer[12], answer[13]


def attentions(session, lun):
    """The unit attentions of this LUN, one after the other, until there are no more."""
    heard = []
    while True:
        status, answer = session.run(TEST_UNIT_READY, lun)
        if status == iscsi.GOOD:
            return heard
        assert status == iscsi.CHECK_CONDITION and sense(answer)[0] == 6, answer.hex()
        assert len(heard) < 8, f'no end of attentions: {heard}'
        heard.append(sense(answer))


def settled(session, *luns):
    for lun in luns:
        attentions(session, lun)
    return session


def numbers(session):
    """REPORT LUNS. It goes to LUN 0, whether there is one or not."""
    answer = session.good(REPORT_LUNS, 0, expect_in=4096)
    listed = [answer[at:at + 8] for at in range(8, 8 + struct.unpack_from('>I', answer)[0], 8)]
    return sorted(int.from_bytes(entry[:2], 'big') & 0x3fff for entry in listed)


def size(session, lun):
    last, block = struct.unpack_from('>QI', session.good(READ_CAPACITY, lun, expect_in=32))
    return (last + 1) * block


def same_session(gateway, session):
    """It is the session that it was, on the connection that it was, and there is no other."""
    session.ping()
    there = [entry['initiator_address'] for entry in gateway.ask_json('sessions')]
    assert there == ['%s:%d' % session.socket.getsockname()], there


def put_out(session):
    """Asked to log out (async event 1, RFC 7143 §11.9.1); who doesn't is dropped."""
    pdu = session.next_pdu()
    assert (pdu.opcode, pdu.bhs[36]) == (iscsi.ASYNC, 1), pdu
    assert session.closed_within(PATIENCE), 'still in'


@claim('a LUN added by SIGHUP: 6/3F/0E once on each LUN there was, it serves; the session stays')
def lun_added(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1), volume(scene, 2)]))
    session = settled(gateway.session(), 1, 2)
    gateway.must_reload(one_target([volume(scene, 1), volume(scene, 2), volume(scene, 7)]))
    assert attentions(session, 1) == [INVENTORY_CHANGED]
    assert attentions(session, 2) == [INVENTORY_CHANGED]
    assert numbers(session) == [1, 2, 7]
    session.write(7, 100, b'here'.ljust(512))
    assert session.read(7, 100, 1).startswith(b'here')
    gateway.log.wait_for('LUN 7', 'added')
    same_session(gateway, session)


@claim('a LUN grown by SIGHUP: 6/2A/09 on that one only, the new size is usable; the session stays')
def lun_grown(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1), volume(scene, 2)]))
    session = settled(gateway.session(), 1, 2)
    session.write(1, 0, b'kept'.ljust(512))
    gateway.must_reload(one_target([volume(scene, 1, mib=96), volume(scene, 2)]))
    assert attentions(session, 1) == [CAPACITY_CHANGED]
    assert attentions(session, 2) == []
    assert (size(session, 1), size(session, 2)) == (96 * MIB, 64 * MIB)
    session.write(1, 96 * MIB // 512 - 1, b'last'.ljust(512))
    assert session.read(1, 96 * MIB // 512 - 1, 1).startswith(b'last')
    assert session.read(1, 0, 1).startswith(b'kept')
    gateway.log.wait_for('LUN 1', 'resized')
    same_session(gateway, session)


@claim('a LUN removed by SIGHUP: 6/3F/0E on the others, 5/25/00 on it, its file is free; the session stays')
def lun_removed(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1), volume(scene, 2)]))
    session = settled(gateway.session(), 1, 2)
    gateway.must_reload(one_target([volume(scene, 1)]))
    assert attentions(session, 1) == [INVENTORY_CHANGED]
    status, answer = session.run(TEST_UNIT_READY, 2)
    assert (status, sense(answer)) == (iscsi.CHECK_CONDITION, (5, 0x25, 0)), answer.hex()
    assert numbers(session) == [1]
    assert [entry['lun'] for entry in gateway.ask_json('luns')] == [1]
    # Another gateway gets the lock only when this one is off the file.
    other = Gateway(scene, one_target([volume(scene, 2)]))
    other.session().read(2, 0, 1)
    same_session(gateway, session)


@claim('a LUN that changes nothing raises nothing: SIGHUP with the same file is not noticed by a host')
def nothing_changed(scene):
    same = one_target([volume(scene, 1)])
    gateway = Gateway(scene, same)
    session = settled(gateway.session(), 1)
    gateway.must_reload(same)
    assert attentions(session, 1) == []
    same_session(gateway, session)


@claim('a host allowed in by SIGHUP is in; one struck off is asked to log out, dropped, refused; others stay')
def hosts_changed(scene):
    def allowed(*names):
        return one_target([volume(scene, 1)], [{'initiators': [name]} for name in names])

    def may_log_in(name):
        try:
            iscsi.Session(gateway.portal, TARGET, initiator=name).close()
            return True
        except iscsi.LoginFailed as refusal:
            assert refusal.status == 0x0203, f'{refusal.status:04x}'  # as if there were no such target
            return False

    first, second = ('iqn.2026-11.dev.sluice:first', 'iqn.2026-11.dev.sluice:second')
    gateway = Gateway(scene, allowed(first))
    session = settled(gateway.session(initiator=first), 1)
    assert not may_log_in(second)
    gateway.must_reload(allowed(first, second))
    stays = settled(gateway.session(initiator=second), 1)
    assert attentions(session, 1) == []
    gateway.must_reload(allowed(second))
    put_out(session)
    assert may_log_in(second) and not may_log_in(first)
    assert attentions(stays, 1) == []


@claim('a secret changed by SIGHUP counts from the next login on; who is in stays')
def secret_changed(scene):
    def secret(text):
        chap = {'user': 'alice', 'secret': text}
        return one_target([volume(scene, 1)], [{'initiators': ['*'], 'chap': chap}])

    gateway = Gateway(scene, secret('first-secret-1'))
    session = scene.keep(ChapSession(gateway.portal, TARGET, 'alice', 'first-secret-1'))
    settled(session, 1)
    gateway.must_reload(secret('second-secret-2'))
    try:
        ChapSession(gateway.portal, TARGET, 'alice', 'first-secret-1').close()
        raise AssertionError('the old secret still opens the door')
    except iscsi.LoginFailed as refusal:
        assert refusal.status == 0x0201, f'{refusal.status:04x}'
    scene.keep(ChapSession(gateway.portal, TARGET, 'alice', 'second-secret-2')).ping()
    session.ping()


@claim('a target added by SIGHUP takes logins; of one removed, sessions are put out and logins refused')
def target_changed(scene):
    more = TARGET + '-more'
    memory = [{'id': 1, 'backend': 'memory', 'size': '64MiB'}]
    one, other = ({'iqn': name, 'hosts': ANY_HOST, 'luns': memory} for name in (TARGET, more))
    gateway = Gateway(scene, {'targets': [one]})
    gateway.must_reload({'targets': [one, other]})
    session = settled(scene.keep(iscsi.Session(gateway.portal, more)), 1)
    stays = settled(gateway.session(), 1)
    gateway.must_reload({'targets': [one]})
    put_out(session)
    try:
        iscsi.Session(gateway.portal, more).close()
        raise AssertionError('a removed target takes logins')
    except iscsi.LoginFailed as refusal:
        assert refusal.status == 0x0203, f'{refusal.status:04x}'  # §11.13.5: not found
    assert attentions(stays, 1) == []


@claim('a broken file at SIGHUP: the configuration in force stays, the log says which line is wrong and why')
def broken_file(scene):
    good = one_target([volume(scene, 1), volume(scene, 2)])
    gateway = Gateway(scene, good)
    session = settled(gateway.session(), 1, 2)
    nowhere = volume(scene, 3, path=str(scene.folder / 'nowhere.img'), create='off')
    for broken, words in (
            ('listen: [', ['.yaml:1', 'not YAML']),
            ('targets:\n- iqn: x\n', ['.yaml:2', 'hosts: is missing']),
            (one_target([volume(scene, 1) | {'write-cahce': 'on'}]), ['.yaml:', "'write-cache'"]),
            (one_target([volume(scene, 1, mib=32)]), ['LUN 1', "can't shrink from 64MiB to 32MiB"]),
            (one_target([volume(scene, 1), nowhere]), ['LUN 3', 'nowhere.img', "doesn't exist"])):
        assert gateway.reload(broken) == 'reload failed, see the log'
        gateway.log.wait_for('reload failed, the configuration in force stays', *words)
        assert (attentions(session, 1), attentions(session, 2)) == ([], []), broken
        assert numbers(session) == [1, 2]
    os.remove(gateway.file)
    gateway.signal(signal.SIGHUP)
    gateway.notified('RELOADING=1')
    assert gateway.notified('READY=1')['STATUS'] == 'reload failed, see the log'
    gateway.log.wait_for('reload failed', "can't read", gateway.file.name)
    gateway.must_reload(one_target([volume(scene, 1)]))
    assert numbers(session) == [1]
    same_session(gateway, session)


@claim('SIGHUP leaves settings that only a restart can change, and the log lists them')
def waits_for_restart(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = settled(gateway.session(), 1)
    gateway.must_reload(one_target([volume(scene, 1, **{'block-size': 4096}), volume(scene, 2)])
                        | {'listen': [{'address': '127.0.0.1:1'}], 'reactors': 1})
    for key in ('listen', 'reactors', 'block-size'):
        gateway.log.wait_for('waits for a restart', key)
    assert numbers(session) == [1, 2], 'the rest is done'
    same_session(gateway, session)
    gateway.session().ping()


class Load(threading.Thread):
    """Writes its own part of LUN 1 over and over, each time something else, and reads it back."""
    BLOCKS = 512  # of 512 bytes, 16 at a time

    def __init__(self, gateway, number):
        super().__init__()
        self.session = gateway.session(initiator=f'{iscsi.INITIATOR}-{number}')
        self.number, self.rounds, self.enough, self.error, self.wrote = number, 0, threading.Event(), None, {}

    def content(self, block):
        return struct.pack('>III', self.number, block, self.rounds) * (16 * 512 // 12) + bytes(16 * 512 % 12)

    def run(self):
        try:
            while not self.enough.is_set():
                for block in range(self.number * self.BLOCKS, (self.number + 1) * self.BLOCKS, 16):
                    self.wrote[block] = self.content(block)
                    self.session.write(1, block, self.wrote[block])
                    assert self.session.read(1, block, 16) == self.wrote[block], f'block {block}'
                self.rounds += 1
        except Exception as error:  # the claim reports it
            self.error = error


@claim('40 reloads under load, with LUNs that come, grow and go: no session is dropped, no write is lost')
def under_load(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    loads = [Load(gateway, number) for number in range(4)]
    for load in loads:
        load.start()
    mib = 64
    try:
        for n in range(40):
            mib += n % 3
            more = [volume(scene, 2 + k) for k in range(n % 4)]
            gateway.must_reload(one_target([volume(scene, 1, mib=mib), *more]))
    finally:
        for load in loads:
            load.enough.set()
        for load in loads:
            load.join(60)
    for load in loads:
        assert load.error is None, f'load {load.number}: {load.error!r}'
        assert load.rounds >= 1, 'nothing was written between the reloads'
    assert size(loads[0].session, 1) == mib * MIB
    everything = {block: data for load in loads for block, data in load.wrote.items()}
    for block, data in everything.items():
        assert loads[0].session.read(1, block, 16) == data, f'block {block}'
    assert len(gateway.ask_json('sessions')) == len(loads)
    assert gateway.stop() == 0
    with open(scene.folder / '1.img', 'rb') as image:
        for block, data in everything.items():
            image.seek(block * 512)
            assert image.read(len(data)) == data, f'block {block} of the file'
