#!/usr/bin/python
# Copyright 2026 The Sluice developers
# SPDX-License-Identifier: Apache-2.0
"""Objects of a Sluice control plane."""

DOCUMENTATION = r'''
module: objects
short_description: Create, change and delete objects of a Sluice control plane
description:
  - Makes the control plane have the objects of O(resources), by C(sluicectl diff) and C(sluicectl apply), or not have them.
  - An object that differs in no field that can be compared is not applied again, so a second run changes nothing.
requirements: [sluicectl on the machine that runs the task]
options:
  resources:
    description: Custom resources of the group C(sluice.dev), each with C(kind), C(metadata) and C(spec). C(apiVersion) may be left out.
    type: list
    elements: dict
    required: true
  secrets:
    description:
      - The values of the Secrets that C(secretRef) and C(keySecretRef) of the resources name.
      - The control plane never shows a secret, so it cannot be compared. Secrets are stored together with another change of the resources.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the Secret.
        type: str
        required: true
      namespace:
        description: Namespace of the Secret, if the resource has one.
        type: str
      data:
        description: The values by key, for CHAP C(password). Ansible prints none of them.
        type: dict
        required: true
  renew_secrets:
    description: Store the secrets also if nothing else differs. The task then always reports a change.
    type: bool
    default: false
  state:
    description:
      - V(present) creates and changes objects.
      - V(absent) deletes them. An object that another one names, or that is in use by sessions, is not deleted, and the task fails.
    choices: [present, absent]
    default: present
    type: str
  server:
    description: host:port of the control plane. This option and the following ones are those of C(sluicectl), which also reads the environment.
    type: str
  insecure:
    description: Connect without TLS.
    type: bool
  tls_ca:
    description: CA of the control plane.
    type: path
  tls_cert:
    description: Certificate of the caller.
    type: path
  tls_key:
    description: Key of the certificate.
    type: path
  context:
    description: Context of C(sluicectl) that has what the other options leave out.
    type: str
  executable:
    description: Name or path of C(sluicectl).
    type: str
    default: sluicectl
attributes:
  check_mode:
    support: full
    description: The control plane stores nothing. It validates objects that the task would create or change, and not a deletion.
  diff_mode:
    support: full
    description: The differences are those of C(sluicectl diff). They contain no secret.
author: The Sluice developers
'''

EXAMPLES = r'''
- name: A volume for the shop
  sluice.cluster.objects:
    resources:
      - {kind: Volume, metadata: {name: orders}, spec: {pool: local, size: 10Gi}}
      - kind: Host
        metadata: {name: web}
        spec: {initiators: ["iqn.2026-11.org.example:web"], chap: {secretRef: {name: web-chap}}}
      - {kind: Target, metadata: {name: db}, spec: {gatewayPool: default, luns: [{id: 0, volume: orders}], hosts: [web]}}
    secrets:
      - {name: web-chap, data: {password: "{{ web_chap_secret }}"}}
'''

RETURN = r'''
objects:
  description: What was done, a line for each object, as C(sluicectl) prints it.
  returned: if something was changed and not in check mode
  type: list
'''

import json  # noqa: E402

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.sluice.cluster.plugins.module_utils.sluicectl import (  # noqa: E402
    CONNECTION, DIFFERENT, DONE, NOT_FOUND, NOUNS, Sluicectl)


def resources_of(module):
    """The resources, complete, or the end of the module with the field that is wrong."""
    complete = []
    for number, resource in enumerate(module.params['resources']):
        place = 'resources[%d]' % number
        if resource.get('kind') == 'Secret':
            module.fail_json(msg=place + ' is a Secret: put it into `secrets`, whose values Ansible does not print')
        if resource.get('kind') not in NOUNS:
            module.fail_json(msg='%s.kind is %r: use one of %s' % (place, resource.get('kind'), ', '.join(sorted(NOUNS))))
        if not isinstance(resource.get('metadata'), dict) or not resource['metadata'].get('name'):
            module.fail_json(msg='%s.metadata.name is missing: each %s has a name' % (place, resource['kind']))
        complete.append(dict({'apiVersion': 'sluice.dev/v1alpha1'}, **resource))
    return complete


def secrets_of(module):
    """The Secrets, as sluicectl reads them."""
    complete = []
    for secret in module.params['secrets']:
        metadata = {key: secret[key] for key in ('name', 'namespace') if secret.get(key)}
        values = {key: str(value) for key, value in secret['data'].items()}
        complete.append({'apiVersion': 'v1', 'kind': 'Secret', 'metadata': metadata, 'stringData': values})
    return complete


def apply(module, sluicectl):
    """Changes what differs. Secrets go over standard input, so they are in no file and in no list of processes."""
    text = json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': resources_of(module) + secrets_of(module)})
    difference, code = sluicectl.run('diff', '-f', '-', text=text, accept=(DONE, DIFFERENT))
    changed = code == DIFFERENT or (module.params['renew_secrets'] and bool(module.params['secrets']))
    result = {'changed': changed}
    if module._diff:
        result['diff'] = {'prepared': difference}
    if changed and not module.check_mode:
        result['objects'] = sluicectl.run('apply', '-f', '-', text=text)[0].splitlines()
    return result


def delete(module, sluicectl):
    """Deletes the objects that exist, those first that name others."""
    order = list(NOUNS)
    lines, names = [], []
    for resource in sorted(resources_of(module), key=lambda resource: order.index(resource['kind'])):
        metadata = resource['metadata']
        name = '.'.join(part for part in (metadata.get('namespace'), metadata['name']) if part)
        noun = NOUNS[resource['kind']]
        if sluicectl.run(noun, 'get', name, '-o', 'name', accept=(DONE, NOT_FOUND))[1] == NOT_FOUND:
            continue
        names.append('%s/%s\n' % (noun, name))
        # A dry run would refuse a host because of its target, which this task deletes first.
        if not module.check_mode:
            lines += sluicectl.run(noun, 'delete', name, '--wait', accept=(DONE, NOT_FOUND))[0].splitlines()
    result = {'changed': bool(names)}
    if module._diff:
        result['diff'] = {'before': ''.join(names), 'after': ''}
    if names and not module.check_mode:
        result['objects'] = lines
    return result


def main():
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(
        CONNECTION,
        resources={'type': 'list', 'elements': 'dict', 'required': True},
        # The whole option would also censor the names of the Secrets wherever they stand in an output.
        secrets={'type': 'list', 'elements': 'dict', 'default': [], 'no_log': False, 'options': {
            'name': {'type': 'str', 'required': True}, 'namespace': {'type': 'str'}, 'data': {'type': 'dict', 'required': True, 'no_log': True}}},
        renew_secrets={'type': 'bool', 'default': False, 'no_log': False},
        state={'type': 'str', 'choices': ['present', 'absent'], 'default': 'present'},
    ))
    sluicectl = Sluicectl(module)
    act = apply if module.params['state'] == 'present' else delete
    module.exit_json(**act(module, sluicectl))


if __name__ == '__main__':
    main()
