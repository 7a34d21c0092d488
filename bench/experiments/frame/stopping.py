"""Ends before the end. Signals that end a run end it by an exception, so that everything is cleaned
up."""

import signal
import sys


class CannotRun(Exception):
    """Why an experiment can't be measured, and what would be needed."""


def install():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    # A shell's background jobs ignore it from birth.
    signal.signal(signal.SIGINT, signal.default_int_handler)
