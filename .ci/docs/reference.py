#!/usr/bin/env python3
"""reference IMAGE DIRECTORY: writes the pages of the reference that come from sources: the API from IMAGE (the descriptors of the protocols
with their comments, as JSON), custom resources from their definitions, metrics from the sources of the programs, alerts from the chart."""
import json
import pathlib
import sys

import yaml

from metric_sources import known

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = '.sluice.v1.'


def cell(text):
    """A text as Markdown in a cell of a table. An angle bracket outside of code would begin a tag."""
    parts = text.replace('|', '\\|').split('`')
    return ' '.join('`'.join(part if i % 2 else part.replace('<', '&lt;') for i, part in enumerate(parts)).split())


def words(comment):
    """A comment of a protocol, whose lines begin with a space, as Markdown."""
    return '\n'.join(line.removeprefix(' ') for line in (comment or '').strip().splitlines())


def table(head, rows):
    lines = [f'| {" | ".join(cells)} |' for cells in [head, ['---'] * len(head), *rows]]
    return '\n'.join(lines) + '\n\n'


class Api:
    """The messages and services of the public API. gateway_stream.proto is the protocol between gateways and control plane."""

    def __init__(self, image):
        files = json.loads(pathlib.Path(image).read_text())['file']
        self.files = [file for file in files if file['name'].startswith('sluice/') and not file['name'].endswith('/gateway_stream.proto')]
        self.names = {SHORT + kind['name'] for file in self.files for part in ('messageType', 'enumType') for kind in file.get(part, [])}

    def link(self, name):
        short = name.removeprefix(SHORT)
        return f'[{short}](#{short.lower()})' if name in self.names else name.removeprefix('.google.protobuf.')

    def type_of(self, field, nested):
        name = field.get('typeName', '')
        if name in nested:
            key, value = nested[name]['field']
            return f'map of {self.type_of(key, {})} to {self.type_of(value, {})}'
        plain = self.link(name) if name else field['type'].removeprefix('TYPE_').lower()
        return f'list of {plain}' if field['label'] == 'LABEL_REPEATED' else plain

    def page(self):
        text = '# API\n\nThe gRPC API of the control plane, package `sluice.v1`, port 7460. `sluicectl`, the operator and the CSI driver use it.\n'
        text += '[Versions](../proto/VERSIONING.md) says what can change. The sources are in `proto/sluice/v1`.\n\n'
        for file in self.files:
            comments = {tuple(at['path']): at['leadingComments'] for at in file['sourceCodeInfo']['location'] if 'leadingComments' in at}
            if not file.get('service'):
                text += f'## Messages of {pathlib.PurePath(file["name"]).name}\n\n'
            for i, service in enumerate(file.get('service', [])):
                text += f'## {service["name"]}\n\n{words(comments.get((6, i)))}\n\n'
                text += table(['method', 'request', 'response', 'meaning'], [
                    [f'`{method["name"]}`', self.link(method['inputType']),
                     ('stream of ' if method.get('serverStreaming') else '') + self.link(method['outputType']),
                     cell(comments.get((6, i, 2, j), ''))] for j, method in enumerate(service['method'])])
            for i, message in enumerate(file.get('messageType', [])):
                nested = {f'{SHORT}{message["name"]}.{inner["name"]}': inner for inner in message.get('nestedType', [])}
                text += f'### {message["name"]}\n\n{words(comments.get((4, i)))}\n\n'
                if message.get('field'):
                    text += table(['field', 'type', 'meaning'], [
                        [f'`{field["name"]}`', self.type_of(field, nested), cell(comments.get((4, i, 2, j), ''))]
                        for j, field in enumerate(message['field'])])
            for i, enum in enumerate(file.get('enumType', [])):
                text += f'### {enum["name"]}\n\n{words(comments.get((5, i)))}\n\n'
                text += table(['value', 'meaning'], [
                    [f'`{value["name"]}`', cell(comments.get((5, i, 2, j), ''))] for j, value in enumerate(enum['value'])])
        return text


def fields(schema, path):
    """Rows of a schema's fields, by path. Lists of objects are `name[]`."""
    for name, node in schema.get('properties', {}).items():
        inner, shown = node, f'{path}{name}'
        if node.get('type') == 'array':
            inner, shown = node['items'], f'{shown}[]'
        kind = inner.get('type', 'integer or string' if inner.get('x-kubernetes-int-or-string') else 'object')
        limits = [', '.join(f'`{value}`' for value in inner['enum'])] if 'enum' in inner else []
        limits += [f'{word} {inner[key]}' for key, word in (('minimum', 'at least'), ('maximum', 'at most')) if key in inner]
        required = 'required' if name in schema.get('required', []) else f'`{json.dumps(node["default"])}`' if 'default' in node else ''
        yield [f'`{shown}`', kind, required, cell('; '.join(limits)), cell(node.get('description', ''))]
        if name != 'conditions':  # they are those of Kubernetes
            yield from fields(inner, f'{shown}.')


def resources():
    text = '# Custom resources\n\nThe kinds of the API group `sluice.dev/v1alpha1`. `kubectl explain KIND.spec` prints the same, and `sluicectl apply` reads\n'
    text += 'the same files without Kubernetes. [Conditions](../operator/CONDITIONS.md) lists the conditions in `status`.\n\n'
    for file in sorted((ROOT / 'operator/config/crd/bases').glob('*.yaml')):
        spec = yaml.safe_load(file.read_text())['spec']
        schema = spec['versions'][0]['schema']['openAPIV3Schema']
        names = spec['names']
        text += f'## {names["kind"]}\n\n{cell(schema["description"])}\n\n'
        text += f'Scope: {"namespace" if spec["scope"] == "Namespaced" else "cluster"}. Short name: `{names["shortNames"][0]}`.\n\n'
        for part in ('spec', 'status'):
            text += f'### {part} of {names["kind"]}\n\n'
            text += table(['field', 'type', 'default', 'values', 'meaning'], fields(schema['properties'][part], ''))
    return text


def metrics():
    text = '# Metrics\n\nEach program has an address `/metrics` for Prometheus: gateway 7462, control plane 7461, operator 7463, CSI driver 7466.\n\n'
    text += 'Histograms have the series `_bucket`, `_sum` and `_count`. `lun_latency_seconds` is at `/metrics/lun-latency`, as it is large.\n\n'
    found = known(ROOT)
    for title, prefix in (('Gateway', 'sluice_gateway_'), ('Control plane', ('sluice_controlplane_', 'sluice_orchestrator_')),
                          ('Operator', 'sluice_operator_'), ('CSI driver', 'sluice_csi_')):
        rows = [[f'`{name}`', kind, cell(help_text)] for name, (kind, help_text) in sorted(found.items()) if name.startswith(prefix)]
        assert rows, f'no metric of {title} was found: are the patterns of metric_sources.py still right?'
        text += f'## {title}\n\n' + table(['metric', 'kind', 'meaning'], rows)
    return text


def alerts():
    text = '# Alerts\n\nThe chart installs these rules with `monitoring.enabled`. Without Kubernetes, give Prometheus the file\n'
    text += '[alerts.yaml](../charts/sluice/files/alerts.yaml). The [runbook](../docs/RUNBOOK.md) explains each finding.\n\n'
    for group in yaml.safe_load((ROOT / 'charts/sluice/files/alerts.yaml').read_text())['groups']:
        for rule in group['rules']:
            wait = f', after {rule["for"]}' if 'for' in rule else ''
            text += f'## {rule["alert"]}\n\n**{rule["labels"]["severity"]}**{wait}. {cell(rule["annotations"]["description"])}\n\n'
            text += f'```promql\n{rule["expr"]}\n```\n\n'
    return text


def main():
    directory = pathlib.Path(sys.argv[2])
    for name, text in (('api', Api(sys.argv[1]).page()), ('resources', resources()), ('metrics', metrics()), ('alerts', alerts())):
        (directory / f'{name}.md').write_text(text)


main()
