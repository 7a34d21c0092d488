"""Attacks by peers that haven't logged in."""
import os
import random
import time

import iscsi
from arena import ATTACKER, attack


def login_bytes(arena, **offers):
    session = arena.session(log_in=False, **offers)
    pdu = session.login_request(iscsi.keys(**session.names, **session.offers))
    return session, session.encode(pdu)


@attack('slow-loris: a login that comes byte by byte is cut off at the login timeout')
def slow_loris(arena):
    session, wire = login_bytes(arena)
    with session:
        begun = time.monotonic()
        try:
            for byte in wire:
                session.send_bytes(bytes([byte]))
                if session.closed_within(arena.login_timeout / 20):
                    break
        except iscsi.Closed:
            pass
        took = time.monotonic() - begun
        assert took < arena.login_timeout + 3, f'it held on for {took:.1f} s'


@attack('half-open: a connection that says nothing is closed at the login timeout')
def half_open(arena):
    with arena.connection() as silent, arena.connection() as half:
        half.send_bytes(bytes([0x43, 0x87]) + bytes(20))
        assert silent.closed_within(arena.login_timeout + 3), 'silent connection still open'
        assert half.closed_within(3), 'half a header still open'


@attack('connect flood: 500 silent connections leave room for a session, and go away')
def connect_flood(arena):
    before = arena.descriptors()
    flood = []
    with arena.memory_grows_at_most(64):
        try:
            for n in range(500):
                try:
                    flood.append(arena.connection())
                except ConnectionResetError:
                    pass  # beyond the limit: the gateway closes it at once
                if n % 50 == 0:
                    arena.witness.works()
            arena.witness.works()
            arena.until(lambda: arena.descriptors() <= before + 8, arena.login_timeout + 10,
                        'descriptors of the flood')
        finally:
            for connection in flood:
                connection.close()


@attack('connect and reset: 2000 connections that vanish at once leak nothing')
def connect_and_reset(arena):
    before = arena.descriptors()
    with arena.memory_grows_at_most(32):
        for n in range(2000):
            connection = arena.connection()
            connection.socket.setsockopt(1, 13, b'\1\0\0\0\0\0\0\0')  # SO_LINGER 0: RST
            connection.close()
            if n % 200 == 0:
                arena.witness.works()
        arena.until(lambda: arena.descriptors() <= before + 8, 10, 'descriptors')


@attack('garbage: random bytes before a login are dropped')
def garbage(arena):
    dice = random.Random(7)
    for n in range(100):
        with arena.connection() as connection:
            try:
                connection.send_bytes(dice.randbytes(dice.choice([1, 48, 100, 4096, 65536])))
                connection.socket.shutdown(1)
            except (iscsi.Closed, OSError):
                continue
            assert connection.closed_within(arena.login_timeout + 3), f'round {n}'


@attack('cut short: a login that ends anywhere harms no other session')
def cut_short(arena):
    before = arena.descriptors()
    session, wire = login_bytes(arena)
    session.close()
    for size in range(1, len(wire), 5):
        with arena.connection() as connection:
            connection.send_bytes(wire[:size])
    arena.until(lambda: arena.descriptors() <= before + 8, 10, 'descriptors')


@attack('login to nothing: each missing or unknown name has its status')
def login_to_nothing(arena):
    def status(**names):
        session = arena.session(log_in=False)
        session.names = {k: v for k, v in (session.names | names).items() if v is not None}
        with session:
            try:
                session.log_in()
            except iscsi.LoginFailed as failure:
                return failure.status
            except iscsi.Closed:
                return 'closed'
        return 'success'

    assert status(TargetName=arena.target + '-not') == 0x0203, 'unknown target'
    assert status(TargetName=None) == 0x0207, 'no target'
    assert status(InitiatorName=None) == 0x0207, 'no initiator'
    assert status(SessionType='Strange') in (0x0209, 0x0200), 'unknown session type'
    assert status(InitiatorName='x' * 300) in (0x0200, 0x0207, 'closed'), 'name too long'


@attack('key flood: a login of 300 keys, and one that never ends, are refused')
def key_flood(arena):
    def refused(session, requests):
        with session:
            try:
                for pdu in requests:
                    session.send(pdu)
                    answer = session.receive(5)
                    if answer.opcode != iscsi.LOGIN_RESPONSE or answer.get(36, 2):
                        return True
            except iscsi.Closed:
                return True
        return False

    session = arena.session(log_in=False)
    many = iscsi.keys(**session.names, **{f'X-dev.sluice.k{n}': 'v' for n in range(300)})
    assert refused(session, [session.login_request(many[:8000])]), '300 keys in one request'

    session = arena.session(log_in=False)
    endless = session.login_request(iscsi.keys(**session.names) + b'X-a=' + b'v' * 4000, flags=0x44)
    assert refused(session, [endless] * 1000), 'a text without end'


@attack('wrong first PDU: a SCSI command, a logout, a Data-Out before a login are refused')
def wrong_first_pdu(arena):
    for opcode in (iscsi.SCSI_COMMAND, iscsi.LOGOUT, iscsi.DATA_OUT, iscsi.NOP_OUT, iscsi.TEXT, 0x3f, 0x1c):
        with arena.connection() as connection:
            connection.send(iscsi.Pdu(opcode, tag=1))
            assert connection.closed_within(arena.login_timeout + 3), f'opcode {opcode:02x}'


@attack('huge login: a data segment of 16 MiB is refused without being stored')
def huge_login(arena):
    with arena.memory_grows_at_most(16), arena.connection() as connection:
        pdu = iscsi.Pdu(iscsi.LOGIN, 0x87, 0, immediate=True).set_lengths(0, 0xffffff)
        connection.send(pdu)
        try:
            for _ in range(256):
                connection.send_bytes(os.urandom(65536))
        except iscsi.Closed:
            return
        assert connection.closed_within(arena.login_timeout + 3)


@attack('reinstatement storm: 40 logins under one name and ISID leave one session')
def reinstatement_storm(arena):
    isid = b'\x80\x11\x22\x33\0\0'
    sessions = [arena.session(isid=isid) for _ in range(40)]
    sessions[-1].ping()
    for old in sessions[:-1]:
        assert old.closed_within(5), 'an old session is still open'
        old.close()
    sessions[-1].ping()
    sessions[-1].log_out()
    sessions[-1].close()


@attack('login storm: 300 sessions that vanish without a logout leak nothing')
def login_storm(arena):
    before = arena.descriptors()
    with arena.memory_grows_at_most(64):
        for n in range(300):
            iscsi.Session(arena.portal, arena.target, initiator=f'{ATTACKER}-{n}').close()
            if n % 50 == 0:
                arena.witness.works()
        arena.until(lambda: arena.descriptors() <= before + 8, 10, 'descriptors')
