# Copyright 2026 The Sluice developers
# SPDX-License-Identifier: Apache-2.0
"""Calls of sluicectl."""
import os

# Exit codes of sluicectl that the modules tell apart.
DONE, DIFFERENT, NOT_FOUND = 0, 1, 3
# The nouns of sluicectl by kind. An object that refers to others comes before them, so it is deleted first.
NOUNS = {'Target': 'target', 'Snapshot': 'snapshot', 'Volume': 'volume', 'Host': 'host', 'Gateway': 'gateway', 'GatewayPool': 'gatewaypool',
         'StoragePool': 'pool', 'Fabric': 'fabric'}

CONNECTION = {
    'server': {'type': 'str'},
    'insecure': {'type': 'bool'},
    'tls_ca': {'type': 'path'},
    'tls_cert': {'type': 'path'},
    'tls_key': {'type': 'path', 'no_log': False},  # a path, no secret
    'context': {'type': 'str'},
    'executable': {'type': 'str', 'default': 'sluicectl'},
}


class Sluicectl:
    """The program with the connection that the options of a module describe; what they leave out comes from the environment, as usual."""

    def __init__(self, module):
        self.module = module
        self.program = module.get_bin_path(module.params['executable'])
        if self.program is None:
            module.fail_json(msg='%s is not on the machine that runs this task: install the package sluicectl there, name its path by `executable`, '
                                 'or delegate the task to a machine that has it' % module.params['executable'])
        self.environment = {'LC_ALL': 'C.UTF-8'}
        for option in ('server', 'tls_ca', 'tls_cert', 'tls_key', 'context'):
            if module.params[option]:
                self.environment['SLUICE_' + option.upper()] = module.params[option]
        if module.params['insecure'] is not None:
            self.environment['SLUICE_INSECURE'] = '1' if module.params['insecure'] else ''

    def run(self, *arguments, **keywords):
        """The standard output and the exit code, which has to be one of `accept`. `text` is the standard input."""
        accept = keywords.get('accept', (DONE,))
        code, out, error = self.module.run_command([self.program] + list(arguments), data=keywords.get('text'),
                                                   environ_update=dict(os.environ, **self.environment))
        if code not in accept:
            # Notes can precede the error.
            error = ('\n' + error.strip()).split('\nerror: ', 1)[-1].strip()
            self.module.fail_json(msg=error or 'sluicectl ended with exit code %d' % code, rc=code)
        return out, code
