"""Writers that keep a log: what was acknowledged must be read back, now and in the end."""
import struct
import threading
import time

import iscsi
from ceph import PATIENCE, until

BLOCK = 4096
SLOTS = 64  # blocks of each writer
WRITERS = 4
APART = 256 << 10  # bytes from one block to the next: all objects and placement groups get some
SIZE = WRITERS * SLOTS * APART  # bytes of the LUN that are used


class Writer(threading.Thread):
    """One session that writes and reads its own blocks in alternation, one command at a time; it opens a lost session again."""

    def __init__(self, number, portal, iqn, lun):
        super().__init__(daemon=True)
        self.number, self.portal, self.iqn, self.lun = number, portal, iqn, lun
        self.stopping = threading.Event()
        self.begun = 0  # writes; each has its number
        self.acknowledged = 0  # the last of them
        self.lost = 0  # sessions
        self.senses = []  # sense of what wasn't GOOD
        self.wrong = []  # what was read and should not have been
        self.fatal = None
        # Of each block what it may hold: the write that was acknowledged last, and those after it whose fate is unknown.
        self.allowed = [{0} for _ in range(SLOTS)]

    def block_of(self, slot):
        return (slot * WRITERS + self.number) * APART // 512

    def content(self, slot, count):
        return struct.pack('>IIQ', self.number, slot, count) * (BLOCK // 16) if count else bytes(BLOCK)

    def run(self):
        try:
            while not self.stopping.is_set():
                try:
                    with iscsi.Session(self.portal, self.iqn, timeout=PATIENCE) as session:
                        while not self.stopping.is_set():
                            self.write(session, self.begun % SLOTS)
                            self.read(session, self.begun * 7 % SLOTS)
                except (iscsi.Closed, iscsi.LoginFailed, ConnectionError):
                    self.lost += 1
                    self.stopping.wait(0.1)
        except Exception as error:  # an exception that ends a thread is not reported elsewhere
            self.fatal = error

    def write(self, session, slot):
        self.begun += 1
        count = self.begun
        self.allowed[slot].add(count)
        data = self.content(slot, count)
        pdu = session.command(struct.pack('>BBQIBB', 0x8a, 0, self.block_of(slot), BLOCK // 512, 0, 0), self.lun, data=data)
        session.send(pdu)
        if self.good(*session.finish(pdu.tag, data, timeout=PATIENCE)):
            self.allowed[slot] = {count}
            self.acknowledged = count

    def good(self, status, answer):
        if status == iscsi.GOOD:
            return True
        sense = (answer[2] & 0xf, answer[12], answer[13]) if status == iscsi.CHECK_CONDITION else (status,)
        if sense[0] != 6:  # a unit attention says nothing about this command
            self.senses.append(sense)
            self.stopping.wait(0.05)
        return False

    def read(self, session, slot):
        cdb = struct.pack('>BBQIBB', 0x88, 0, self.block_of(slot), BLOCK // 512, 0, 0)
        status, found = session.run(cdb, self.lun, BLOCK, timeout=PATIENCE)
        if self.good(status, found) and found not in [self.content(slot, count) for count in self.allowed[slot]]:
            self.wrong.append(f'block {self.block_of(slot)}: {found[:16].hex()}, not one of {sorted(self.allowed[slot])}')


class Load:
    """All writers, from the beginning of a `with` to its end, which reads every block."""

    def __init__(self, portal, iqn, lun):
        self.writers = [Writer(i, portal, iqn, lun) for i in range(WRITERS)]
        self.portal, self.iqn, self.lun = portal, iqn, lun
        with iscsi.Session(portal, iqn, timeout=PATIENCE) as session:
            for writer in self.writers:
                for slot in range(SLOTS):
                    session.write(lun, writer.block_of(slot), writer.content(slot, 0))

    def __enter__(self):
        for writer in self.writers:
            writer.start()
        self.goes_on()
        return self

    def __exit__(self, kind, *_):
        for writer in self.writers:
            writer.stopping.set()
        for writer in self.writers:
            writer.join(PATIENCE)
            assert not writer.is_alive(), f'writer {writer.number} still waits for its answer'
        if kind is None:
            self.judge()
        print('writes', sum(w.begun for w in self.writers), 'sessions lost', self.lost, 'sense', sorted(set(self.senses)))

    lost = property(lambda self: sum(w.lost for w in self.writers))
    senses = property(lambda self: [sense for w in self.writers for sense in w.senses])
    acknowledged = property(lambda self: [w.acknowledged for w in self.writers])

    def goes_on(self):
        """Every writer begins and ends some writes from now on; says how long that took."""
        begun = time.monotonic()
        now = [writer.begun for writer in self.writers]

        def done():
            for writer in self.writers:
                if writer.fatal:
                    raise writer.fatal
            return all(writer.acknowledged > count + 4 for writer, count in zip(self.writers, now))

        until('I/O goes on', done)
        print(f'goes on after {time.monotonic() - begun:.1f} s')

    def undisturbed(self):
        """No session was lost, and every answer was GOOD."""
        assert not self.lost, f'{self.lost} sessions lost'
        assert not self.senses, self.senses

    def judge(self):
        with iscsi.Session(self.portal, self.iqn, timeout=PATIENCE) as session:
            session.good(bytes(6), self.lun)
            for writer in self.writers:
                for slot in range(SLOTS):
                    writer.read(session, slot)
                assert not writer.wrong, writer.wrong[:5]
                if writer.fatal:
                    raise writer.fatal
