"""SIGTERM: what is under way ends well, who doesn't listen is left behind, and the process ends by itself."""
import signal
import struct
import time

import iscsi
from claims import claim
from gateway import Gateway, one_target, volume
from reloading import settled

BOUND = 10  # seconds from SIGTERM to the end, as the manual says (limits.h: kShutdownBound)
LOGOUT_REQUEST = 1  # AsyncEvent, RFC 7143 §11.9.1


def write16(block, count):
    return struct.pack('>BBQIBB', 0x8a, 0, block, count, 0, 0)


def asked_to_log_out(session):
    while True:
        pdu = session.next_pdu(BOUND)
        if pdu.opcode == iscsi.ASYNC:
            assert pdu.bhs[36] == LOGOUT_REQUEST, f'async event {pdu.bhs[36]}'
            assert 1 <= pdu.get(42, 2) <= BOUND, f'{pdu.get(42, 2)} s to log out in'  # Parameter3
            return


def leave(session):
    session.log_out()
    assert session.closed_within(BOUND), 'still open after the logout'
    session.close()


def ends_well(gateway, since):
    assert gateway.wait() == 0
    assert time.monotonic() - since <= BOUND, 'it took longer than the bound'
    assert gateway.log.all().endswith('stopped'), gateway.log.lines[-1]


def terminate(gateway):
    gateway.signal(signal.SIGTERM)
    return time.monotonic()


@claim('SIGTERM asks each session to log out; once they have, the gateway ends with 0')
def asks_for_logout(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    sessions = [settled(gateway.session(), 1) for _ in range(3)]
    begun = terminate(gateway)
    for session in sessions:
        asked_to_log_out(session)
    for session in sessions:
        leave(session)
    ends_well(gateway, begun)


@claim('a write in flight at SIGTERM is answered, and what it wrote is in the file')
def write_in_flight(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]), faults='1.img=delay-every=1;delay-ms=700')
    session = settled(gateway.session(), 1)
    data = b'in flight'.ljust(4096, b'.')
    command = session.command(write16(8, 8), 1, data=data)
    session.send(command)
    session.ping()  # an answer to what came later: the write is with the backend
    begun = terminate(gateway)
    answers = set()
    while answers != {iscsi.ASYNC, iscsi.SCSI_RESPONSE}:
        pdu = session.next_pdu(BOUND)
        assert pdu.opcode not in answers, pdu
        answers.add(pdu.opcode)
        if pdu.opcode == iscsi.SCSI_RESPONSE:
            assert (pdu.tag, pdu.bhs[2], pdu.bhs[3]) == (command.tag, 0, iscsi.GOOD), pdu
    leave(session)
    ends_well(gateway, begun)
    assert (scene.folder / '1.img').read_bytes()[4096:8192] == data


@claim('a write whose data is still to come at SIGTERM may bring it, and is answered')
def write_half_there(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = settled(gateway.session(InitialR2T='Yes', ImmediateData='No'), 1)
    data = bytes(range(256)) * 512
    command = session.command(write16(0, len(data) // 512), 1, data=data, immediate_bytes=0)
    session.send(command)
    r2t = session.next_pdu(BOUND)
    assert r2t.opcode == iscsi.R2T, r2t
    begun = terminate(gateway)
    asked_to_log_out(session)
    for pdu in session.solicited(r2t, data):
        session.send(pdu)
    assert session.finish(command.tag, data, BOUND)[0] == iscsi.GOOD
    leave(session)
    ends_well(gateway, begun)
    assert (scene.folder / '1.img').read_bytes()[:len(data)] == data


@claim('a second SIGTERM, a SIGINT and a SIGHUP on the way out change nothing: sessions may log out, exit 0')
def signals_again(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = settled(gateway.session(), 1)
    begun = terminate(gateway)
    asked_to_log_out(session)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        gateway.signal(number)
    assert session.read(1, 0, 1) == bytes(512), 'what is asked until the logout is answered'
    leave(session)
    ends_well(gateway, begun)


@claim('a peer that never reads is left behind at SIGTERM: exit 0 within the bound')
def never_reads(scene):
    gateway = Gateway(scene, one_target([{'id': 1, 'backend': 'null', 'size': '4GiB'}, volume(scene, 2)]))
    deaf = settled(gateway.session(receive_buffer=4096), 1)
    for _ in range(32):
        deaf.send(deaf.command(struct.pack('>BBQIBB', 0x88, 0, 0, 2048, 0, 0), 1, expect_in=1 << 20))
    other = settled(gateway.session(), 2)
    begun = terminate(gateway)
    asked_to_log_out(other)
    leave(other)
    ends_well(gateway, begun)


@claim('a peer that does not obey, one that has not logged in and a discovery session are left behind at '
       'SIGTERM: exit 0 within the bound')
def does_not_obey(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = settled(gateway.session(), 1)
    stranger = scene.keep(iscsi.Connection(gateway.portal))
    discovery = scene.keep(iscsi.Session(gateway.portal, None))
    begun = terminate(gateway)
    asked_to_log_out(session)
    for connection in (session, stranger, discovery):
        assert connection.closed_within(BOUND)
    ends_well(gateway, begun)


@claim('no host can log in after SIGTERM')
def no_more_logins(scene):
    gateway = Gateway(scene, one_target([volume(scene, 1)]))
    session = settled(gateway.session(), 1)
    begun = terminate(gateway)
    asked_to_log_out(session)
    try:
        late = gateway.session(timeout=BOUND)
        late.ping()
        raise AssertionError('a login succeeded')
    except (iscsi.Closed, iscsi.LoginFailed, OSError):
        pass
    leave(session)
    ends_well(gateway, begun)
