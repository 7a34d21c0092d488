"""A small iSCSI initiator for tests: exact where a test needs it to be, and able to be wrong on purpose.

One connection per session, ErrorRecoveryLevel 0, no authentication. `Session` logs in and runs SCSI commands;
`Connection` sends and receives single PDUs, right or wrong. RFC 7143 numbers are in the comments."""
import itertools
import os
import socket
import struct
import time

NOP_OUT, SCSI_COMMAND, TASK_MANAGEMENT, LOGIN, TEXT, DATA_OUT, LOGOUT, SNACK = 0, 1, 2, 3, 4, 5, 6, 0x10
NOP_IN, SCSI_RESPONSE, TASK_RESPONSE, LOGIN_RESPONSE, TEXT_RESPONSE = 0x20, 0x21, 0x22, 0x23, 0x24
DATA_IN, LOGOUT_RESPONSE, R2T, ASYNC, REJECT = 0x25, 0x26, 0x31, 0x32, 0x3f
IMMEDIATE, FINAL = 0x40, 0x80
NO_TAG = 0xffffffff
GOOD, CHECK_CONDITION = 0, 2


class Closed(Exception):
    """The target closed or reset the connection."""


class LoginFailed(Exception):
    def __init__(self, status):
        super().__init__(f'login status {status:04x}')
        self.status = status


def _crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xff] ^ (crc >> 8)
    return struct.pack('<I', crc ^ 0xffffffff)


def pad(data):
    return data + bytes(-len(data) % 4)


def lun_bytes(lun):
    return struct.pack('>H', lun if lun < 256 else 0x4000 | lun) + bytes(6)


class Pdu:
    """A header of 48 bytes with its additional segments and data."""

    def __init__(self, opcode, flags=FINAL, tag=NO_TAG, data=b'', ahs=b'', immediate=False):
        self.bhs = bytearray(48)
        self.bhs[0] = opcode | (IMMEDIATE if immediate else 0)
        self.bhs[1] = flags
        struct.pack_into('>I', self.bhs, 16, tag)
        self.ahs, self.data = ahs, data
        self.set_lengths(len(ahs) // 4, len(data))

    def set_lengths(self, ahs_words, data_bytes):
        self.bhs[4:8] = bytes([ahs_words]) + data_bytes.to_bytes(3, 'big')
        return self

    def put(self, offset, value, size=4):
        self.bhs[offset:offset + size] = value.to_bytes(size, 'big')
        return self

    def get(self, offset, size=4):
        return int.from_bytes(self.bhs[offset:offset + size], 'big')

    opcode = property(lambda self: self.bhs[0] & 0x3f)
    flags = property(lambda self: self.bhs[1])
    tag = property(lambda self: self.get(16))

    def __repr__(self):
        return f'<PDU {self.opcode:02x} flags {self.flags:02x} tag {self.tag:x} data {len(self.data)}>'


class Connection:
    def __init__(self, portal, timeout=10.0, receive_buffer=None, source=None):
        host, _, port = portal.rpartition(':')
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.header_digest = self.data_digest = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send_bytes(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def encode(self, pdu, spoil_header_digest=False, spoil_data_digest=False):
        spoiled = b'\x55\xaa\x55\xaa'
        out = bytes(pdu.bhs) + pdu.ahs
        if self.header_digest:
            out += spoiled if spoil_header_digest else crc32c(out)
        if pdu.data:
            out += pad(pdu.data)
            if self.data_digest:
                out += spoiled if spoil_data_digest else crc32c(pad(pdu.data))
        return out

    def send(self, pdu, **wrongs):
        self.send_bytes(self.encode(pdu, **wrongs))

    def _read(self, size):
        got = bytearray()
        while len(got) < size:
            try:
                part = self.socket.recv(size - len(got))
            except ConnectionResetError as error:
                raise Closed from error
            if not part:
                raise Closed
            got += part
        return bytes(got)

    def receive(self, timeout=None):
        """The next PDU; Closed at the end, TimeoutError when none comes."""
        if timeout is not None:
            self.socket.settimeout(timeout)
        pdu = Pdu(0)
        pdu.bhs = bytearray(self._read(48))
        pdu.ahs = self._read(pdu.bhs[4] * 4)
        if self.header_digest:
            assert self._read(4) == crc32c(bytes(pdu.bhs) + pdu.ahs), 'header digest'
        size = pdu.get(5, 3)
        if size:
            padded = self._read(size + -size % 4)
            if self.data_digest:
                assert self._read(4) == crc32c(padded), 'data digest'
            pdu.data = padded[:size]
        return pdu

    def closed_within(self, seconds):
        """Whether the target closes in that time; what it sends until then is thrown away."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.socket.settimeout(max(0.01, end - time.monotonic()))
                if not self.socket.recv(65536):
                    return True
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return False


def keys(**pairs):
    return b''.join(f'{name}={value}'.encode() + b'\0' for name, value in pairs.items())


_isids = itertools.count(int.from_bytes(os.urandom(3), 'big'))
INITIATOR = 'iqn.2026-11.dev.sluice:tester'


class Session(Connection):
    """A session that is logged in. `offers` are login keys besides the usual ones."""

    def __init__(self, portal, target, initiator=INITIATOR, isid=None, timeout=10.0, receive_buffer=None,
                 log_in=True, source=None, **offers):
        super().__init__(portal, timeout, receive_buffer, source)
        self.isid = isid or b'\x80' + (next(_isids) & 0xffffff).to_bytes(3, 'big') + b'\0\0'
        self.tags = itertools.count(1)
        self.cmd_sn, self.exp_stat_sn, self.max_cmd_sn = 1, 0, 1
        self.names = {'InitiatorName': initiator, 'TargetName': target, 'SessionType': 'Normal'}
        if target is None:
            self.names |= {'SessionType': 'Discovery'}
            del self.names['TargetName']
        self.offers = {'HeaderDigest': 'None', 'DataDigest': 'None', 'InitialR2T': 'Yes',
                       'ImmediateData': 'Yes', 'MaxRecvDataSegmentLength': 262144,
                       'MaxBurstLength': 262144, 'FirstBurstLength': 65536} | offers
        self.agreed = {}
        if log_in:
            try:
                self.log_in()
            except BaseException:
                self.close()
                raise

    # --- login (RFC 7143 §6, §11.12): straight to operational negotiation, then full feature phase

    def login_request(self, data, flags=0x87, tsih=0):
        pdu = Pdu(LOGIN, flags, 0, data, immediate=True)
        pdu.bhs[8:14] = self.isid
        return pdu.put(14, tsih, 2).put(24, self.cmd_sn).put(28, self.exp_stat_sn)

    def log_in(self):
        self.send(self.login_request(keys(**self.names, **self.offers)))
        while True:
            answer = self.receive()
            assert answer.opcode == LOGIN_RESPONSE, answer
            status = answer.get(36, 2)
            if status:
                raise LoginFailed(status)
            self._count(answer, has_status=True)
            self.agreed |= dict(p.decode().split('=', 1) for p in answer.data.split(b'\0') if b'=' in p)
            if answer.flags & 0x83 == 0x83:
                break
            self.send(self.login_request(b''))
        self.header_digest = self.agreed.get('HeaderDigest') == 'CRC32C'
        self.data_digest = self.agreed.get('DataDigest') == 'CRC32C'
        self.segment = self._agreed_number('MaxRecvDataSegmentLength', 8192)
        self.first_burst = self._agreed_number('FirstBurstLength', 65536)

    def _agreed_number(self, key, default):
        value = self.agreed.get(key, '')
        return int(value) if value.isdigit() else default

    def _count(self, pdu, has_status):
        if has_status:
            self.exp_stat_sn = (pdu.get(24) + 1) & 0xffffffff
        self.max_cmd_sn = pdu.get(32)

    # --- full feature phase

    def take_cmd_sn(self):
        self.cmd_sn += 1
        return self.cmd_sn - 1

    def command(self, cdb, lun, expect_in=0, data=b'', immediate_bytes=None, flags=None, ahs=b''):
        """A SCSI command PDU (§11.3), not sent."""
        if flags is None:
            flags = FINAL | 0x01 | (0x40 if expect_in else 0) | (0x20 if data else 0)
        if immediate_bytes is None:
            immediate_bytes = min(len(data), self.first_burst, self.segment)
        pdu = Pdu(SCSI_COMMAND, flags, next(self.tags), data[:immediate_bytes], ahs)
        pdu.bhs[8:16] = lun_bytes(lun)
        pdu.bhs[32:48] = cdb[:16].ljust(16, b'\0')
        return pdu.put(20, expect_in or len(data)).put(24, self.take_cmd_sn()).put(28, self.exp_stat_sn)

    def next_pdu(self, timeout=None):
        """The next PDU that isn't housekeeping: pings are answered here."""
        while True:
            pdu = self.receive(timeout)
            self._count(pdu, pdu.opcode not in (DATA_IN, R2T, NOP_IN) or pdu.opcode == DATA_IN and pdu.flags & 1)
            if pdu.opcode == NOP_IN and pdu.tag == NO_TAG:
                if pdu.get(20) != NO_TAG:
                    self.send(self._pong(pdu))
                continue
            return pdu

    def _pong(self, ping):
        pdu = Pdu(NOP_OUT, FINAL, NO_TAG, immediate=True)
        pdu.bhs[8:16] = ping.bhs[8:16]
        return pdu.put(20, ping.get(20)).put(24, self.cmd_sn).put(28, self.exp_stat_sn)

    def solicited(self, r2t, data):
        """Data-Out PDUs that answer an R2T (§11.7)."""
        offset, length = r2t.get(40), r2t.get(44)
        for number, start in enumerate(range(offset, offset + length, self.segment)):
            end = min(start + self.segment, offset + length)
            pdu = Pdu(DATA_OUT, FINAL if end == offset + length else 0, r2t.tag, data[start:end])
            pdu.bhs[8:16] = r2t.bhs[8:16]
            yield pdu.put(20, r2t.get(20)).put(28, self.exp_stat_sn).put(36, number).put(40, start)

    def finish(self, tag, data=b'', timeout=None):
        """Serves R2Ts and collects data until the command `tag` has its status: (status, data or sense)."""
        got = bytearray()
        while True:
            pdu = self.next_pdu(timeout)
            if pdu.opcode == REJECT:
                raise AssertionError(f'rejected, reason {pdu.bhs[2]:02x}')
            if pdu.tag != tag:
                continue
            if pdu.opcode == R2T:
                for out in self.solicited(pdu, data):
                    self.send(out)
            elif pdu.opcode == DATA_IN:
                offset = pdu.get(40)
                got[offset:offset + len(pdu.data)] = pdu.data
                if pdu.flags & 1:
                    return pdu.bhs[3], bytes(got)
            elif pdu.opcode == SCSI_RESPONSE:
                if pdu.bhs[2]:
                    raise AssertionError(f'iSCSI response {pdu.bhs[2]:02x}')
                return pdu.bhs[3], pdu.data[2:] if pdu.bhs[3] else bytes(got)

    def run(self, cdb, lun, expect_in=0, data=b'', timeout=None):
        pdu = self.command(cdb, lun, expect_in, data)
        self.send(pdu)
        return self.finish(pdu.tag, data, timeout)

    def good(self, cdb, lun, expect_in=0, data=b'', timeout=None):
        """As run(), but unit attentions are passed over and anything else than GOOD is an error. Reloads in a row
        may raise new ones as fast as these are taken."""
        for _ in range(200):
            status, answer = self.run(cdb, lun, expect_in, data, timeout)
            if status != CHECK_CONDITION or answer[2] & 0xf != 6:
                break
        assert status == GOOD, f'status {status:02x} sense {answer.hex()}'
        return answer

    def read(self, lun, block, count, block_size=512, timeout=None):
        return self.good(struct.pack('>BBQIBB', 0x88, 0, block, count, 0, 0), lun, count * block_size,
                         timeout=timeout)

    def write(self, lun, block, data, block_size=512, fua=False, timeout=None):
        self.good(struct.pack('>BBQIBB', 0x8a, 8 if fua else 0, block, len(data) // block_size, 0, 0), lun,
                  data=data, timeout=timeout)

    def synchronize_cache(self, lun, timeout=None):
        self.good(bytes([0x35]) + bytes(9), lun, timeout=timeout)

    def ping(self, timeout=None):
        pdu = Pdu(NOP_OUT, FINAL, next(self.tags), b'ping', immediate=True)
        self.send(pdu.put(20, NO_TAG).put(24, self.cmd_sn).put(28, self.exp_stat_sn))
        while True:
            answer = self.next_pdu(timeout)
            if answer.opcode == NOP_IN and answer.tag == pdu.tag:
                assert answer.data == b'ping', answer
                return

    def log_out(self, reason=0, timeout=None):
        pdu = Pdu(LOGOUT, FINAL | reason, next(self.tags), immediate=True)
        self.send(pdu.put(24, self.cmd_sn).put(28, self.exp_stat_sn))
        while True:
            answer = self.next_pdu(timeout)
            if answer.opcode == LOGOUT_RESPONSE:
                assert answer.bhs[2] == 0, f'logout response {answer.bhs[2]}'
                return
