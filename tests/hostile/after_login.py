"""Attacks by peers that have logged in."""
import os
import random
import struct

import iscsi
from arena import LUN, NULL_LUN, attack

TEST_UNIT_READY = bytes(6)


def read16(block, count):
    return struct.pack('>BBQIBB', 0x88, 0, block, count, 0, 0)


def write16(block, count):
    return struct.pack('>BBQIBB', 0x8a, 0, block, count, 0, 0)


def settle(session):
    """Passes over the unit attentions a new session gets."""
    session.good(TEST_UNIT_READY, LUN)


def rejected_or_closed(session, timeout=5, or_asked_again=False):
    """The peer's mistake is answered by a Reject, an error status or the end of the connection; or, where
    that is right too, by an R2T for what is missing."""
    try:
        while True:
            pdu = session.next_pdu(timeout)
            if pdu.opcode == iscsi.REJECT or or_asked_again and pdu.opcode == iscsi.R2T:
                return True
            if pdu.opcode == iscsi.SCSI_RESPONSE and (pdu.bhs[2] or pdu.bhs[3]):
                return True
            if pdu.opcode in (iscsi.SCSI_RESPONSE, iscsi.DATA_IN) and not pdu.bhs[3]:
                return False
    except iscsi.Closed:
        return True
    except TimeoutError:
        return False


@attack('never reads: a session that asks for 1 GiB and reads nothing costs only its own budget')
def never_reads(arena):
    with arena.memory_grows_at_most(160) as memory:
        session = arena.session(receive_buffer=4096)
        settle(session)
        session.socket.settimeout(1)
        sent = 0
        try:
            while sent < 1024 and session.cmd_sn <= session.max_cmd_sn + 256:
                session.send(session.command(read16(0, 2048), NULL_LUN, expect_in=1 << 20))
                sent += 1
        except (TimeoutError, iscsi.Closed):
            pass
        for _ in range(20):
            arena.witness.works()
        memory.check()
        session.close()


@attack('pings unread: 50000 NOP-Outs of 4 KiB whose answers are not read stay bounded')
def pings_unread(arena):
    with arena.memory_grows_at_most(96):
        session = arena.session(receive_buffer=4096)
        session.socket.settimeout(1)
        try:
            for n in range(50000):
                pdu = iscsi.Pdu(iscsi.NOP_OUT, tag=n, data=bytes(4096), immediate=True)
                session.send(pdu.put(20, iscsi.NO_TAG).put(24, session.cmd_sn).put(28, session.exp_stat_sn))
        except (TimeoutError, iscsi.Closed):
            pass
        arena.witness.works()
        session.close()


@attack('huge AHS: 1020 bytes of nonsense beside a command are answered or refused')
def huge_ahs(arena):
    for ahs in (os.urandom(1020), bytes(1020), struct.pack('>HBx', 0x3fd, 1) + bytes(1016),
                struct.pack('>HBx', 0xffff, 1) + bytes(1016), struct.pack('>HBxI', 5, 2, 1 << 31) * 100):
        with arena.session() as session:
            settle(session)
            session.send(session.command(TEST_UNIT_READY, LUN, ahs=ahs))
            try:
                session.next_pdu(5)
            except iscsi.Closed:
                pass


@attack('too long: a data segment above what was declared is refused, not stored')
def too_long(arena):
    with arena.memory_grows_at_most(32), arena.session() as session:
        settle(session)
        pdu = session.command(write16(0, 2048), LUN, data=bytes(1 << 20), immediate_bytes=0)
        pdu.set_lengths(0, 0xffffff)
        session.send(pdu)
        try:
            for _ in range(256):
                session.send_bytes(bytes(65536))
        except iscsi.Closed:
            return
        assert rejected_or_closed(session)


@attack('wrong header digest: the connection ends, nothing is executed')
def wrong_header_digest(arena):
    with arena.session(HeaderDigest='CRC32C') as session:
        assert session.header_digest, 'CRC32C was not agreed'
        session.write(LUN, 0, b'before' .ljust(512, b'.'))
        pdu = session.command(write16(0, 1), LUN, data=bytes(512))
        session.send(pdu, spoil_header_digest=True)
        assert session.closed_within(5)
    with arena.session() as session:
        assert session.read(LUN, 0, 1).startswith(b'before')


@attack('wrong data digest: the write is not executed, the answer is a Reject or the end')
def wrong_data_digest(arena):
    with arena.session(DataDigest='CRC32C') as session:
        assert session.data_digest, 'CRC32C was not agreed'
        session.write(LUN, 0, b'before'.ljust(512, b'.'))
        session.send(session.command(write16(0, 1), LUN, data=bytes(512)), spoil_data_digest=True)
        assert rejected_or_closed(session)
    with arena.session() as session:
        assert session.read(LUN, 0, 1).startswith(b'before')


@attack('right digests: both kinds agreed, data there and back')
def right_digests(arena):
    with arena.session(HeaderDigest='CRC32C', DataDigest='CRC32C') as session:
        data = os.urandom(8192)
        session.write(LUN, 8, data)
        assert session.read(LUN, 8, 16) == data
        session.ping()
        session.log_out()


@attack('CmdSN games: numbers outside the window are ignored, gaps wait, order is kept')
def cmd_sn_games(arena):
    with arena.session() as session:
        settle(session)

        def ready(cmd_sn):
            pdu = session.command(TEST_UNIT_READY, LUN).put(24, cmd_sn & 0xffffffff)
            session.send(pdu)
            return pdu.tag

        here = session.cmd_sn
        ignored = {ready(here - 1), ready(here - 5), ready(here + 5000), ready(here + (1 << 30)),
                   ready(here - (1 << 31))}
        tags = [ready(here + 2), ready(here + 1)]
        tags.append(ready(here))
        answered = [session.next_pdu(5).tag for _ in range(3)]
        assert answered == list(reversed(tags)), f'{answered} for {tags}'
        session.cmd_sn = here + 3
        session.ping()
        assert not ignored & set(answered)
        session.good(TEST_UNIT_READY, LUN)


@attack('beyond the window: 5000 commands beyond MaxCmdSN harm no other session')
def beyond_the_window(arena):
    with arena.memory_grows_at_most(64), arena.session() as session:
        settle(session)
        session.socket.settimeout(2)
        try:
            for _ in range(5000):
                session.send(session.command(read16(0, 8), LUN, expect_in=4096))
        except (TimeoutError, iscsi.Closed):
            pass
        arena.witness.works()


@attack('immediate flood: 5000 immediate commands are executed, refused or end the connection')
def immediate_flood(arena):
    with arena.memory_grows_at_most(64), arena.session() as session:
        settle(session)
        session.socket.settimeout(2)
        try:
            for _ in range(5000):
                pdu = session.command(TEST_UNIT_READY, LUN)
                session.cmd_sn -= 1
                pdu.bhs[0] |= iscsi.IMMEDIATE
                session.send(pdu.put(24, session.cmd_sn))
        except (TimeoutError, iscsi.Closed):
            pass
        arena.witness.works()


@attack('Data-Out overruns: data beyond the command, the burst or the R2T never reaches a neighbour block')
def data_out_overruns(arena):
    with arena.session() as session:
        session.write(LUN, 0, b'neighbour'.ljust(512, b'.') * 64)

    def attempt(offset, length, expected=4096, transfer_tag=None, data_sn=0, want='refused'):
        with arena.session() as session:
            settle(session)
            pdu = session.command(write16(8, expected // 512), LUN, data=bytes(expected), immediate_bytes=0)
            session.send(pdu)
            r2t = session.next_pdu(5)
            assert r2t.opcode == iscsi.R2T, r2t
            out = iscsi.Pdu(iscsi.DATA_OUT, iscsi.FINAL, pdu.tag, b'\xee' * length)
            out.bhs[8:16] = pdu.bhs[8:16]
            out.put(20, r2t.get(20) if transfer_tag is None else transfer_tag)
            session.send(out.put(28, session.exp_stat_sn).put(36, data_sn).put(40, offset))
            assert rejected_or_closed(session, or_asked_again=length < expected), f'{want}: offset {offset} length {length}'

    attempt(0, 8192, want='longer than the R2T')
    attempt(4096, 512, want='after the end')
    attempt(0xfffff000, 4096, want='offset that wraps')
    attempt(0, 512, want='final too early')
    attempt(0, 4096, transfer_tag=0x12345678, want='transfer tag that was not given')
    attempt(0, 4096, data_sn=7, want='data sequence number')
    with arena.session() as session:
        after = session.read(LUN, 0, 64)
        assert after[:4096] == b'neighbour'.ljust(512, b'.') * 8, 'blocks before it were hit'
        assert after[8192:] == b'neighbour'.ljust(512, b'.') * 48, 'blocks after it were hit'


@attack('immediate data beyond the command: the excess is dropped')
def immediate_overrun(arena):
    with arena.session() as session:
        session.write(LUN, 0, b'neighbour'.ljust(512, b'.') * 16)
        pdu = session.command(write16(0, 1), LUN, data=bytes(4096), immediate_bytes=4096).put(20, 512)
        session.send(pdu)
        try:
            session.next_pdu(5)
        except iscsi.Closed:
            pass
    with arena.session() as session:
        assert session.read(LUN, 1, 15) == b'neighbour'.ljust(512, b'.') * 15


@attack('Data-Out for nothing: unsolicited PDUs without a command are rejected or dropped')
def data_out_for_nothing(arena):
    with arena.session() as session:
        settle(session)
        for n in range(200):
            out = iscsi.Pdu(iscsi.DATA_OUT, iscsi.FINAL, 0x7000 + n, bytes(4096))
            try:
                session.send(out.put(20, n))
            except iscsi.Closed:
                return


@attack('garbage in the full feature phase: rejected or closed')
def garbage_after_login(arena):
    dice = random.Random(11)
    for _ in range(60):
        with arena.session() as session:
            try:
                session.send_bytes(dice.randbytes(dice.choice([48, 96, 1024, 65536])))
                session.socket.shutdown(1)
            except (iscsi.Closed, OSError):
                continue
            assert session.closed_within(5)


@attack('every opcode: each of the 64, with flags and tags at random, is survived')
def every_opcode(arena):
    dice = random.Random(13)
    for opcode in range(64):
        if opcode in (iscsi.SCSI_COMMAND, iscsi.DATA_OUT):
            continue  # they could write somewhere
        with arena.session() as session:
            pdu = iscsi.Pdu(opcode, dice.randrange(256), dice.randrange(1 << 32), dice.randbytes(64),
                            immediate=bool(dice.randrange(2)))
            pdu.bhs[20:48] = dice.randbytes(28)
            try:
                session.send(pdu)
                session.socket.shutdown(1)
            except (iscsi.Closed, OSError):
                continue
            assert session.closed_within(10), f'opcode {opcode:02x}'


@attack('task management for tasks that are not there is answered')
def management_of_nothing(arena):
    with arena.session() as session:
        settle(session)
        for function in (1, 2, 3, 4, 5, 9, 14, 15, 127):
            pdu = iscsi.Pdu(iscsi.TASK_MANAGEMENT, iscsi.FINAL | function, next(session.tags), immediate=True)
            pdu.bhs[8:16] = iscsi.lun_bytes(LUN)
            session.send(pdu.put(20, 0x5555).put(24, session.cmd_sn).put(28, session.exp_stat_sn))
            answer = session.next_pdu(5)
            assert answer.opcode in (iscsi.TASK_RESPONSE, iscsi.REJECT), f'function {function}: {answer}'


@attack('discovery sessions run no commands')
def discovery_runs_nothing(arena):
    with iscsi.Session(arena.portal, None) as session:
        session.send(session.command(read16(0, 1), LUN, expect_in=512))
        assert rejected_or_closed(session)


@attack('a second login inside a session is refused')
def second_login(arena):
    with arena.session() as session:
        session.send(session.login_request(iscsi.keys(**session.names)))
        assert rejected_or_closed(session)


@attack('vanishes in mid-write: 100 sessions that die between R2T and data leak nothing')
def vanishes_in_mid_write(arena):
    before = arena.descriptors()
    with arena.memory_grows_at_most(64):
        for _ in range(100):
            session = arena.session()
            settle(session)
            session.send(session.command(write16(64, 512), LUN, data=bytes(262144), immediate_bytes=0))
            assert session.next_pdu(5).opcode == iscsi.R2T
            session.close()
        arena.until(lambda: arena.descriptors() <= before + 8, 10, 'descriptors')
