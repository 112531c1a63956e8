"""Each component that replaces a program has its page of differences, by one form."""

import pathlib
import re

import pytest

README = pathlib.Path("README.md")
_ROW = re.compile(r"^\| \[(?P<name>[a-z-]+)\]\(cmd/\w+/README\.md\) \| (?P<rest>.+)$")
_FLAG = re.compile(r"`--([a-z][a-z0-9-]+)")
FIRST, SECOND = "## Before you change over", "## Needs nothing from you"
ELSEWHERE = {
    "capz": "cmd/capz/README.md#differences-from-the-reference",
    "zvirt-ccm": "cmd/zvirt_ccm/README.md#differences-from-the-reference",
}


def rows() -> dict[str, str]:
    """Return the rest of README's row by the name of each replacing component."""
    matches = (_ROW.match(line) for line in README.read_text().splitlines())
    named = {match["name"]: match["rest"] for match in matches if match}
    return {name: rest for name, rest in named.items() if not rest.startswith("|")}


@pytest.mark.parametrize("name", sorted(rows()))
def test_the_row_links_to_the_differences(name: str) -> None:
    target = ELSEWHERE.get(name, f"docs/differences/{name}.md")
    assert f"([differences]({target}))" in rows()[name]


@pytest.mark.parametrize("name", sorted(rows().keys() - ELSEWHERE.keys()))
def test_what_hurts_comes_first_and_says_what_to_do(name: str) -> None:
    text = pathlib.Path(f"docs/differences/{name}.md").read_text()
    first = text[text.index(FIRST) : text.index(SECOND)]
    table = [line for line in first.splitlines() if line.startswith("| ")]
    assert table[0] == f"| | reference | {name} | what to do |"
    assert len(table) >= 6
    assert [
        line for line in table if line.count(" |") < 4 or line.endswith("| |")
    ] == []


@pytest.mark.parametrize("name", sorted(rows().keys() - ELSEWHERE.keys()))
def test_flags_that_are_named_exist(name: str) -> None:
    page = pathlib.Path(f"docs/differences/{name}.md").read_text()
    flags = pathlib.Path(f"docs/reference/{name}-flags.md").read_text()
    others = {"parent-rbac", "cloud", "kind", "pid"}
    named = set(_FLAG.findall(page)) - others
    assert [flag for flag in sorted(named) if f"`--{flag}`" not in flags] == []
