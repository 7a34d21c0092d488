"""A gateway that stands still for a while (SIGSTOP, a paused machine) and then goes on. What waits unread in its
sockets may have been sent again over another path meanwhile, so that it must not be executed any more."""
import os
import signal
import struct
import threading
import time
from contextlib import contextmanager

import iscsi
from arena import LUN, OTHER_LUN, WITNESS, attack

OLD, NEW = b'\x11' * 512, b'\x22' * 512


@contextmanager
def standing_still(arena, seconds):
    """The gateway stands still for the body, and for so many seconds at least."""
    os.kill(arena.pid, signal.SIGSTOP)
    begun = time.monotonic()
    try:
        arena.until(lambda: stopped(arena.pid), 5, 'the gateway stands still')
        yield
        time.sleep(max(0, begun + seconds - time.monotonic()))
    finally:
        os.kill(arena.pid, signal.SIGCONT)


def stopped(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'T'


@contextmanager
def load(arena):
    """Sessions that write as fast as they can, until they are dropped or the body ends."""
    ended = threading.Event()

    def write():
        try:
            with arena.session() as session:
                while not ended.is_set():
                    session.write(OTHER_LUN, 4096, bytes(65536))
        except (iscsi.Closed, TimeoutError):
            pass

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def write_to(session, block):
    """A WRITE of one block, all of its data with it, that is sent but not waited for."""
    command = session.command(struct.pack('>BBQIBB', 0x8a, 0, block, 1, 0, 0), LUN, data=NEW)
    session.send(command)
    return command.tag


@attack('stands still for 1.5 s under load: every connection is closed, and no write that waited is executed')
def too_long(arena):
    with arena.session() as session, load(arena):
        session.write(LUN, 8, OLD)
        with standing_still(arena, 1.5):
            write_to(session, 8)
        assert session.closed_within(5), 'still open'
    assert arena.witness.session.closed_within(5), 'the witness is still connected'
    arena.witness.session = iscsi.Session(arena.portal, arena.target, initiator=WITNESS, timeout=3.0)
    with arena.session() as after:
        assert after.read(LUN, 8, 1) == OLD, 'the write that waited was executed'


@attack('stands still for 0.2 s under load: no session is lost, and a write that waited is executed')
def a_moment(arena):
    with arena.session() as session, load(arena):
        session.write(LUN, 8, OLD)
        with standing_still(arena, 0.2):
            tag = write_to(session, 8)
        status, _ = session.finish(tag)
        assert status == iscsi.GOOD, f'status {status:02x}'
        assert session.read(LUN, 8, 1) == NEW
