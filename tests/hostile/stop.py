"""How a gateway stops while initiators are on it."""
import iscsi


def obedient(session):
    """SIGTERM asks for a logout (async event 1, RFC 7143 §11.9.1); a session that obeys is answered."""
    while True:
        pdu = session.next_pdu(10)
        if pdu.opcode == iscsi.ASYNC:
            assert pdu.bhs[36] == 1, f'async event {pdu.bhs[36]}'
            break
    session.log_out(timeout=5)
    assert session.closed_within(5), 'still open after the logout'


def deaf(session):
    """One that doesn't obey is dropped in the end."""
    assert session.closed_within(12), 'still open'
