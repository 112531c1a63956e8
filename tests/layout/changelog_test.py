"""Each component has a changelog whose versions have the same four sections."""

import pathlib
import re

import pytest

SECTIONS = ["Added", "Changed", "Fixed", "Upgrade notes"]
COMPONENTS = sorted(
    file.parent.name for file in pathlib.Path("cmd").glob("*/README.md")
)
_VERSION = re.compile(
    r"^## \d+\.\d+\.\d+ \((unreleased|\d{4}-\d{2}-\d{2})\)$", re.MULTILINE
)


def test_there_are_components() -> None:
    assert len(COMPONENTS) >= 6


@pytest.mark.parametrize("component", COMPONENTS)
def test_versions_have_the_four_sections(component: str) -> None:
    """Each section has at least one entry."""
    text = pathlib.Path("cmd", component, "CHANGELOG.md").read_text()
    versions = [match.start() for match in _VERSION.finditer(text)]
    assert versions, "no version"
    for start, end in zip(versions, [*versions[1:], len(text)], strict=True):
        parts = re.split(r"^### (.+)$", text[start:end], flags=re.MULTILINE)
        assert parts[1::2] == SECTIONS
        assert all(re.search(r"^- \S", part, re.MULTILINE) for part in parts[2::2])
