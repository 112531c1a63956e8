"""Links and anchors of all Markdown files resolve, and the index lists every page.

Source of anchors: GitHub, the `id` of a heading: lower case, without punctuation,
spaces replaced by hyphens, and a number if it repeats.
"""

import functools
import os
import pathlib
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path()
INDEX = pathlib.Path("docs/README.md")
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$")
_FENCE = re.compile(r"^ *(```|~~~)")
_INLINE_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_SKIPPED = {"node_modules", "dist", ".git", ".pants.d", ".mypy_cache"}


def pages() -> list[pathlib.Path]:
    """Return every Markdown file, relative to the checkout."""
    files: list[pathlib.Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        files += [pathlib.Path(folder, name) for name in names if name.endswith(".md")]
    return sorted(files)


def prose(text: str) -> Iterator[str]:
    """Yield the lines outside of fenced blocks."""
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line


def anchor(heading: str) -> str:
    """Return the anchor of a heading that is the first of its text."""
    text = _INLINE_LINK.sub(r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@functools.cache
def anchors(page: pathlib.Path) -> frozenset[str]:
    """Return the anchors of a page."""
    counts: Counter[str] = Counter()
    names = set()
    for line in prose(page.read_text()):
        if match := _HEADING.match(line):
            name = anchor(match[1])
            names.add(f"{name}-{counts[name]}" if counts[name] else name)
            counts[name] += 1
    return frozenset(names)


def links(text: str) -> Iterator[str]:
    """Yield the targets of links, without those in code."""
    for line in prose(text):
        yield from _LINK.findall(_CODE.sub("`code`", line))


def problem(page: pathlib.Path, link: str) -> str:
    """Return what is wrong with a link of a page; empty: it resolves."""
    url = urllib.parse.urlsplit(link)
    if url.scheme:
        return "" if url.scheme in ("https", "http", "mailto") else "unknown scheme"
    target = page
    if url.path:
        target = pathlib.Path(os.path.normpath(page.parent / url.path))
    if not target.exists():
        return "no such file"
    if url.fragment and url.fragment not in anchors(target):
        return f"no such anchor; there are {', '.join(sorted(anchors(target)))}"
    return ""


def test_links_and_anchors_resolve() -> None:
    checked, problems = 0, []
    for page in pages():
        for link in links(page.read_text()):
            checked += 1
            if text := problem(page, link):
                problems.append(f"{page}: {link}: {text}")
    print(f"{len(pages())} pages, {checked} links")
    assert problems == []
    assert checked > 150


def listed(index: pathlib.Path) -> set[str]:
    """Return the files and folders that an index page refers to, if it exists."""
    if not index.exists():
        return set()
    targets = (link.partition("#")[0] for link in links(index.read_text()))
    return {os.path.normpath(index.parent / target) for target in targets}


def test_the_index_lists_every_page() -> None:
    """Decision records are listed by their folder, reference pages also by theirs."""
    refs = listed(INDEX) | listed(pathlib.Path("docs/reference/README.md"))
    existing = {str(page) for page in pages() if page.parts[0] == "docs"}
    records = {page for page in existing if page.startswith("docs/decisions/")}
    assert existing - records - refs - {str(INDEX)} == set()
    assert "docs/decisions" in refs


@pytest.mark.parametrize(
    ("link", "text"),
    [
        ("README.md", ""),
        ("docs/README.md#no-such", "no such anchor"),
        ("docs/no-such.md", "no such file"),
        ("gopher://example", "unknown scheme"),
    ],
)
def test_a_broken_link_is_reported(link: str, text: str) -> None:
    assert problem(pathlib.Path("README.md"), link).startswith(text)
    assert bool(problem(pathlib.Path("README.md"), link)) == bool(text)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Drift detection and repair", "drift-detection-and-repair"),
        ("`mooring plan`", "mooring-plan"),
        ("[Route] of cloud.conf: keys", "route-of-cloudconf-keys"),
    ],
)
def test_anchors_are_those_of_github(heading: str, name: str) -> None:
    assert anchor(heading) == name
