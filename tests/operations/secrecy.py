"""Secrets stay secret: nothing that a gateway prints, logs or answers holds one, however it came by it."""
import base64
import json
import os
import pathlib

import iscsi
from chap import ChapSession
from claims import claim
from gateway import TARGET, Gateway, one_target, run, volume

# One of each way to give a secret, each unlike the others.
INLINE, FROM_FILE, FROM_ENVIRONMENT = 'inline-Zebra-11', 'file-Yak-222222', 'environ-Xerus-33'
MUTUAL, DISCOVERY, NEXT = 'mutual-Walrus-44', 'discovery-Viper5', 'next-Unicorn-666'
WRONG, SHORT = 'wrong-Toucan-777', 'tooshort'
ALL = (INLINE, FROM_FILE, FROM_ENVIRONMENT, MUTUAL, DISCOVERY, NEXT, WRONG)
ENVIRONMENT = {'OPERATIONS_SECRET': FROM_ENVIRONMENT}


def nowhere(text, where, secrets=ALL):
    for secret in secrets:
        raw = secret.encode()
        for form in (secret, raw.hex(), base64.b64encode(raw).decode().rstrip('=')):
            assert form.lower() not in text.lower(), f'{where} holds the secret {secret!r}'


def configuration(scene, inline=INLINE):
    secret_file = scene.file('alice.secret', FROM_FILE + '\n')
    hosts = [{'initiators': ['iqn.2026-11.dev.sluice:inline'], 'chap': {'user': 'ines', 'secret': inline},
              'mutual': {'user': 'store', 'secret': MUTUAL}},
             {'initiators': ['iqn.2026-11.dev.sluice:file'],
              'chap': {'user': 'felix', 'secret-file': str(secret_file)}},
             {'initiators': ['*'], 'chap': {'user': 'emil', 'secret-env': 'OPERATIONS_SECRET'}}]
    return one_target([volume(scene, 1)], hosts) | {
        'discovery': {'chap': {'user': 'dora', 'secret': DISCOVERY}}}


def logins(scene, gateway, inline=INLINE):
    """All hosts log in correctly, then all of them with wrong secrets."""
    people = (('inline', 'ines', inline, MUTUAL, '5'), ('file', 'felix', FROM_FILE, None, '7'),
              ('environment', 'emil', FROM_ENVIRONMENT, None, '8'))
    sessions = []
    for name, user, secret, mutual, algorithm in people:
        who = {'initiator': f'iqn.2026-11.dev.sluice:{name}', 'mutual': mutual, 'algorithm': algorithm}
        sessions.append(scene.keep(ChapSession(gateway.portal, TARGET, user, secret, **who)))
        sessions[-1].ping()
        for wrong_user, wrong_secret in ((user, WRONG), (secret, secret)):  # typed into the wrong field, too
            refused(gateway, TARGET, wrong_user, wrong_secret, who)
    scene.keep(ChapSession(gateway.portal, None, 'dora', DISCOVERY))
    refused(gateway, None, 'dora', WRONG, {})
    return sessions


def refused(gateway, target, user, secret, who):
    try:
        ChapSession(gateway.portal, target, user, secret, **who).close()
    except iscsi.LoginFailed as refusal:
        assert refusal.status == 0x0201, f'{refusal.status:04x}'
    else:
        raise AssertionError(f'{user} came in')


def everything_said(gateway):
    process = pathlib.Path(f'/proc/{gateway.process.pid}')
    yield 'its command line', (process / 'cmdline').read_bytes().decode()
    for what in ('sessions', 'luns'):
        yield f'sluice-gateway {what}', gateway.ask(what)
        yield f'sluice-gateway {what} --json', gateway.ask(what, '--json')
    yield '/metrics', gateway.metrics_text()


def shows_nothing(scene, form):
    gateway = Gateway(scene, configuration(scene), ENVIRONMENT, level='debug', format=form)
    sessions = logins(scene, gateway)
    assert len(gateway.ask_json('sessions')) == len(sessions) + 1
    for where, text in everything_said(gateway):
        nowhere(text, where)
    gateway.must_reload(configuration(scene, NEXT))
    logins(scene, gateway, NEXT)
    assert gateway.reload(configuration(scene, SHORT)) == 'reload failed, see the log'
    assert gateway.reload({'targets': [NEXT]}) == 'reload failed, see the log'
    gateway.log.wait_for('12 to 255')
    assert gateway.stop() == 0
    log = gateway.log.all()
    # A line for each initiator and for discovery: equal causes have one line each minute.
    assert log.count('login refused') >= 4 and 'reload failed' in log, 'the log tells less than was done'
    nowhere(log, 'the log', (*ALL, SHORT))


@claim('no secret, from a file, the environment or the configuration, is in a log of level debug, in what '
       '`sessions` and `luns` answer, in /metrics, in the command line; also after failed logins and reloads')
def text_log(scene):
    shows_nothing(scene, 'text')


@claim('nor in a JSON log')
def json_log(scene):
    shows_nothing(scene, 'json')


@claim('--check says where each secret comes from and never what it is, also when it is refused')
def check(scene):
    os.environ.update(ENVIRONMENT)
    for name in ENVIRONMENT:
        scene.callback(os.environ.pop, name)
    text = json.dumps(configuration(scene))
    good = run(scene, '--check', '--config', scene.file('good.yaml', text), expect=0)
    for word in ('inline', f'file {scene.folder}/alice.secret', 'environment OPERATIONS_SECRET'):
        assert f'(secret: {word})' in good.stdout, good.stdout
    nowhere(good.stdout + good.stderr, '--check')
    for wrong in (SHORT, MUTUAL, INLINE + '\n', [INLINE], {INLINE: 1}):
        text = json.dumps(configuration(scene, wrong))
        ran = run(scene, '--check', '--config', scene.file('wrong.yaml', text), expect=2)
        nowhere(ran.stdout + ran.stderr, '--check', (*ALL, SHORT))
    open_to_all = scene.file('open.yaml', json.dumps(configuration(scene)), mode=0o644)
    ran = run(scene, '--check', '--config', open_to_all, expect=2)
    assert 'chmod 600' in ran.stderr, ran.stderr
    nowhere(ran.stdout + ran.stderr, '--check of a file that others can read')
