"""What tests do to a throw-away Ceph (lib/mini-ceph, its folder in SLUICE_CEPH), and ask of it."""
import json
import os
import pathlib
import subprocess
import time

MINI_CEPH = pathlib.Path(__file__).with_name('mini-ceph')
PATIENCE = 60  # seconds; how long something may take before it counts as never


def ceph(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def mini_ceph(command, *words):
    subprocess.run([MINI_CEPH, command, os.environ['SLUICE_CEPH'], *words], check=True, timeout=PATIENCE)


def watcher():
    """The address of the client that has rbd/disk open."""
    watchers = json.loads(ceph('rbd', 'status', 'rbd/disk', '--format', 'json'))['watchers']
    watchers = watchers if isinstance(watchers, list) else list(watchers.values())
    return watchers[0]['address'] if watchers else None


def until(what, condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f'never happened: {what}')
