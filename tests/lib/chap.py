"""A session that proves who it is by CHAP (RFC 7143 §12.1, RFC 1994), and asks the target to do so, too."""
import hashlib
import os

import iscsi

ALGORITHMS = {'5': hashlib.md5, '6': hashlib.sha1, '7': hashlib.sha256, '8': hashlib.sha3_256}
SECURITY_STAYS, SECURITY_TO_OPERATIONAL = 0x00, 0x81  # §11.12.3: CSG 0, and with T set, NSG 1


def response(algorithm, identifier, secret, challenge):
    return '0x' + ALGORITHMS[algorithm](bytes([identifier]) + secret.encode() + challenge).hexdigest()


class ChapSession(iscsi.Session):
    """`mutual`: the secret that the target must prove."""

    def __init__(self, portal, target, user, secret, mutual=None, algorithm='5', **options):
        self.user, self.secret, self.mutual, self.algorithm = user, secret, mutual, algorithm
        super().__init__(portal, target, **options)

    def log_in(self):
        self._ask(iscsi.keys(**self.names, AuthMethod='CHAP'), SECURITY_STAYS)
        asked = self._ask(iscsi.keys(CHAP_A=self.algorithm), SECURITY_STAYS)
        challenge = bytes.fromhex(asked['CHAP_C'][2:])
        proof = {'CHAP_N': self.user,
                 'CHAP_R': response(self.algorithm, int(asked['CHAP_I']), self.secret, challenge)}
        ours = os.urandom(16)
        if self.mutual:
            proof |= {'CHAP_I': 77, 'CHAP_C': '0x' + ours.hex()}
        proven = self._ask(iscsi.keys(**proof), SECURITY_TO_OPERATIONAL)
        if self.mutual:
            expected = response(self.algorithm, 77, self.mutual, ours)
            assert proven['CHAP_R'].lower() == expected, 'the target did not prove itself'
        self.names = {}  # already sent
        super().log_in()

    def _ask(self, text, flags):
        self.send(self.login_request(text, flags))
        answer = self.receive()
        assert answer.opcode == iscsi.LOGIN_RESPONSE, answer
        if answer.get(36, 2):
            raise iscsi.LoginFailed(answer.get(36, 2))
        self._count(answer, has_status=True)
        return dict(pair.decode().split('=', 1) for pair in answer.data.split(b'\0') if b'=' in pair)
