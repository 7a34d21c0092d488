"""Floods of connections and of guesses, from several loopback addresses."""
import contextlib
import socket
import threading
import time

import iscsi
from arena import attack
from chap import ChapSession


@contextlib.contextmanager
def silent(arena, count, *addresses):
    """Connections that say nothing, so many from each address; those that the gateway ends are ended."""
    host, port = arena.portal.rsplit(':', 1)
    flood = []
    try:
        for _ in range(count):
            for address in addresses:
                flood.append(socket.create_connection((host, int(port)), 5, source_address=(address, 0)))
        yield flood
    finally:
        for connection in flood:
            connection.close()


def log_in_and_out(arena):
    session = arena.session()
    session.ping()
    session.log_out()
    session.close()


@attack('flood from two addresses: 256 silent connections from each do not keep a host out')
def two_addresses(arena):
    with silent(arena, 256, '127.0.0.7', '127.0.0.8'):
        log_in_and_out(arena)
        arena.witness.works()


@attack('flood from one address: 400 silent connections do not keep a host at that address out')
def own_address(arena):
    with silent(arena, 400, '127.0.0.1'):
        log_in_and_out(arena)


@attack('flood from 300 addresses: one silent connection from each does not keep a known host out')
def many_addresses(arena):
    log_in_and_out(arena)
    with silent(arena, 1, *(f'127.2.{n // 200}.{n % 200 + 1}' for n in range(300))):
        log_in_and_out(arena)
        arena.witness.works()


GUESSING = 3.0  # seconds


def guest(arena, secret, source):
    """Logs in to the target that asks for CHAP, and out again. False: refused."""
    try:
        session = ChapSession(arena.portal, arena.target + '-guarded', 'guest', secret,
                              initiator=arena.target + '-guest', source=source)
    except (iscsi.LoginFailed, iscsi.Closed, TimeoutError):
        return False
    session.log_out()
    session.close()
    return True


@attack('guessing: 16 peers that guess a CHAP secret are slowed down, and the host at another address gets in')
def guessing(arena):
    guesses = []
    end = time.monotonic() + GUESSING

    def guess():
        while time.monotonic() < end:
            assert not guest(arena, 'a-wrong-secret', '127.0.0.7')
            guesses.append(time.monotonic())

    peers = [threading.Thread(target=guess) for _ in range(16)]
    for peer in peers:
        peer.start()
    assert guest(arena, 'a-secret-of-a-guest', '127.0.0.8'), 'its host is locked out'
    while time.monotonic() < end:
        arena.witness.works()
    for peer in peers:
        while peer.is_alive():
            arena.witness.works()  # which answers pings, too
            peer.join(0.2)
    # Each waits for 2 s in the end; without that there were thousands.
    assert len(guesses) < 16 * 8, f'{len(guesses)} guesses in {GUESSING} s'
