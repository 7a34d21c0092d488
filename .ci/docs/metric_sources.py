"""The metrics of gateway, control plane and operator, as their sources define them."""
import re

TEXT = r'((?:"(?:[^"\\]|\\.)*"[\s+]*)+)'


def sources(root, folder, suffix):
    for path in sorted((root / folder).rglob('*' + suffix)):
        if not path.name.endswith(('_test.go', '_test.cc')):
            yield path.read_text()


def joined(literals):
    """A text of the source that consists of several literals."""
    return ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def known(root):
    """Each metric's kind and help by its full name."""
    found = {}
    for text in sources(root, 'gateway/src/metrics', '.cc'):
        variables = {name: value for name, value in re.findall(rf'const char\* (?:const )?(\w+) =\s*{TEXT};', text)}
        for kind, name, help_text, variable in re.findall(rf'out\.(counter|gauge|histogram)\(\s*"(\w+)",\s*(?:{TEXT}|(\w+))', text):
            found['sluice_gateway_' + name] = kind, joined(help_text or variables[variable])
    for text in sources(root, 'controlplane/internal/leader', '.go'):
        for kind, name, help_text in re.findall(rf'\b(counter|gauge|histogram)\("(\w+)",\s*{TEXT}', text):
            found['sluice_orchestrator_' + name] = kind, joined(help_text)
    for folder in ('controlplane', 'operator'):
        for text in sources(root, folder, '.go'):
            for kind, name, help_text in re.findall(rf'\b(Counter|Gauge|Histogram)Opts\{{\s*Name:\s*"(sluice_\w+)",\s*Help:\s*{TEXT}', text):
                found[name] = kind.lower(), joined(help_text)
    return found
