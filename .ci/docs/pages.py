#!/usr/bin/env python3
"""pages DIRECTORY: collects the pages of the documentation site from the tree into a directory, for mkdocs. The directory has the pages of
the reference already.

The navigation of mkdocs.yml names the pages, and pages link to further ones: all of them become pages of the site. Other files that a
page links to become text files of the site. A link to a file that the tree does not have is an error. Markdown is written for CommonMark,
as code hosts show it; this program indents lists as mkdocs wants them.

A line with only a link whose title is "include" is replaced by the chapter to which the link points. So a text is at one place, and its
reader finds it at another one, too."""
import pathlib
import posixpath
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where a page of the tree is in the site, if not at its own path.
MOVED = {'docs/index.md': 'index.md', 'README.md': 'PROJECT.md'}
IMAGES = ('.svg', '.png')
CODE = re.compile(r'(^ *```.*?^ *```$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\((?![a-z]+:)([^)\s]+)')
INCLUDE = re.compile(r'^\[[^\]]*\]\((\S+)#(\S+) "include"\)$', re.MULTILINE)
HEADING = re.compile(r'^(#+) (.*)$', re.MULTILINE)
ITEM = re.compile(r'(?:[-*]|\d+\.) +')


def slug(heading):
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')


def outside_code(change, text):
    """The text with all that is no code changed."""
    parts = CODE.split(text)
    return ''.join(part if i % 3 == 1 else '' if i % 3 == 2 else change(part) for i, part in enumerate(parts))


def indented(text):
    """Lists as Python-Markdown reads them: what belongs to an item is indented by four columns. A list begins after an empty line, and so
    does the item after one with several paragraphs."""
    result, margins, fence, loose = [], [], False, False
    for line in text.split('\n'):
        words = line.lstrip(' ')
        if words and not fence:
            while margins and len(line) - len(words) < margins[-1]:
                margins.pop()
        margin = margins[-1] if margins else 0
        depth, line = len(margins), line[min(margin, len(line) - len(words)):]
        item = ITEM.match(line) if not fence else None
        if item:
            margins.append(margin + item.end())
            before = result[-1].lstrip() if result else ''
            if before and not ITEM.match(before) and (loose or len(result[-1]) - len(before) <= 4 * depth):
                result.append('')
            loose = False
        elif not words and margins:
            loose = True
        if words.startswith('```'):
            fence = not fence
        result.append(' ' * 4 * depth + line if words else '')
    return '\n'.join(result)


class Site:
    def __init__(self, directory):
        self.directory = directory
        self.generated = {str(file.relative_to(directory)): file.read_text() for file in directory.rglob('*.md')}
        listed = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], cwd=ROOT, capture_output=True, text=True, check=True)
        self.files = set(listed.stdout.split('\n')[:-1])
        self.folders = {str(parent) for file in self.files for parent in pathlib.PurePath(file).parents}
        self.waiting, self.seen, self.wrong = [], set(), []

    def address(self, path):
        """The path in the site of a file of the tree. mkdocs leaves out what begins with a dot."""
        if not path.endswith(('.md', *IMAGES)):
            path += '.txt'
        return MOVED.get(path, path).lstrip('.')

    def add(self, path):
        if path not in self.seen:
            self.seen.add(path)
            self.waiting.append(path)

    def target(self, page, name):
        """The file of the tree that a link of a page means."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page
        if path in self.folders:
            path = posixpath.join(path, 'README.md') if f'{path}/README.md' in self.files else f'{path}/FILES.md'
        elif path not in self.files and path not in self.generated:
            self.wrong.append(f'{page}: there is no {name}')
            return None
        return path

    def link(self, page, name, at, headings=()):
        """A link of a page of the tree, as the site's page `at` needs it. Headings are those of a chapter that `at` includes."""
        name, _, anchor = name.partition('#')
        if not name and anchor in headings:
            return f'#{anchor}'
        path = self.target(page, name)
        if path is None:
            return name
        self.add(path)
        relative = posixpath.relpath(self.address(path), posixpath.dirname(at) or '.')
        return f'{relative}#{anchor}' if anchor and path.endswith('.md') else relative

    def linked(self, page, text, at, headings=()):
        return outside_code(lambda part: LINK.sub(lambda found: f']({self.link(page, found[1], at, headings)}', part), text)

    def chapter(self, page, found, text, at):
        path = self.target(page, found[1])
        if path is None:
            return ''
        source = (ROOT / path).read_text()
        fenced = [match.span() for match in CODE.finditer(source) if match[0].lstrip().startswith('```')]
        heads = [head for head in HEADING.finditer(source) if not any(begin < head.start() < end for begin, end in fenced)]
        for i, head in enumerate(heads):
            if slug(head[2]) == found[2]:
                end = next((other.start() for other in heads[i + 1:] if len(other[1]) <= len(head[1])), len(source))
                around = [len(other[1]) for other in HEADING.finditer(text, 0, found.start())][-1]
                inside = [other for other in heads[i + 1:] if other.start() < end]
                body, begin = '', head.end()
                for other in inside:
                    level = '#' * (len(other[1]) - len(head[1]) + around)
                    body += source[begin:other.start()] + f'{level} {other[2]}'
                    begin = other.end()
                return self.linked(path, (body + source[begin:end]).strip('\n'), at, {slug(other[2]) for other in inside})
        self.wrong.append(f'{page}: {path} has no chapter #{found[2]}')
        return ''

    def page(self, path):
        """The Markdown of a page for mkdocs."""
        if path.endswith('/FILES.md'):
            folder = path.removesuffix('/FILES.md')
            inside = sorted(file for file in self.files if file.startswith(f'{folder}/'))
            text = f'# {folder}\n\n' + ''.join(f'- [{file}]({posixpath.relpath(file, folder)})\n' for file in inside)
        else:
            text = self.generated.get(path) or (ROOT / path).read_text()
        at, result, begin = self.address(path), '', 0
        for found in INCLUDE.finditer(text):
            result += self.linked(path, text[begin:found.start()], at) + self.chapter(path, found, text, at)
            begin = found.end()
        return indented(result + self.linked(path, text[begin:], at))

    def write(self, navigation):
        for path in navigation:
            self.add(next((tree for tree, site in MOVED.items() if site == path), path))
        while self.waiting:
            path = self.waiting.pop()
            file = self.directory / self.address(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith('.md'):
                found = '' if self.address(path) in navigation else '---\nsearch:\n  exclude: true\n---\n'
                file.write_text(found + self.page(path))
            else:
                file.write_bytes((ROOT / path).read_bytes())


def pages(navigation):
    for entry in navigation:
        for value in entry.values():
            yield from pages(value) if isinstance(value, list) else [value]


def main():
    site = Site(pathlib.Path(sys.argv[1]).resolve())
    settings = (ROOT / '.ci/docs/mkdocs.yml').read_text()
    navigation = yaml.safe_load(re.search(r'^nav:\n(?:[ #].*\n)+', settings, re.MULTILINE)[0])['nav']
    site.write(list(pages(navigation)))
    sys.exit('\n'.join(site.wrong) or None)


main()
