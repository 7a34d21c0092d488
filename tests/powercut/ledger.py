"""What a writer was promised, and whether a disk keeps it.

A block holds 4 KiB: eight sectors that each name the block and the turn in which it was written. Turns of a
block go up by one, so a sector on the disk tells how old it is."""
import json
import struct

MAGIC = 0x534c5549
SECTOR, SECTORS = 512, 8
BLOCK = SECTOR * SECTORS


def content(lun, block, turn):
    return b''.join(struct.pack('>IIQQI', MAGIC, lun, block, turn, sector).ljust(SECTOR, b'%')
                    for sector in range(SECTORS))


class Ledger:
    """For each block of a LUN: the last turn sent, acknowledged, and promised to survive a loss of power."""

    def __init__(self, lun, blocks):
        self.lun = lun
        self.sent = [0] * blocks
        self.acknowledged = [0] * blocks
        self.promised = [0] * blocks

    def next(self, block):
        self.sent[block] += 1
        return content(self.lun, block, self.sent[block])

    def to_json(self):
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text):
        ledger = cls.__new__(cls)
        vars(ledger).update(json.loads(text))
        return ledger

    def broken(self, block, data, demand):
        """What is wrong with the bytes of a block; None if they keep the promise (`demand`: turns by block)."""
        for sector in range(SECTORS):
            magic, lun, number, turn, place = struct.unpack_from('>IIQQI', data, sector * SECTOR)
            if magic != MAGIC:
                turn = 0
                if any(data[sector * SECTOR:(sector + 1) * SECTOR]):
                    return f'block {block} sector {sector} holds what was never written'
            elif (lun, number, place) != (self.lun, block, sector):
                return f'block {block} sector {sector} holds block {number} sector {place} of LUN {lun}'
            if turn < demand[block]:
                return f'block {block} sector {sector} is of turn {turn}, turn {demand[block]} was promised'
            if turn > self.sent[block]:
                return f'block {block} sector {sector} is of turn {turn}, which was never sent'
        return None
