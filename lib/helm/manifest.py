"""What a release's manifest holds. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lib.helm import yaml_text

_KIND = re.compile(r'^\s*"?kind"?\s*:\s*"?(\w+)"?\s*,?\s*$', re.MULTILINE)
"""A line with the kind of an object, in YAML or JSON."""


def objects(manifest: str, kinds: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of some kinds; the others are not decoded.

    Raises:
        YAMLError: one of them is malformed.
    """
    for text in re.split(r"^---", manifest, flags=re.MULTILINE):
        if not set(_KIND.findall(text)) & set(kinds):
            continue
        document = yaml_text.load(text)
        if isinstance(document, Mapping) and document.get("kind") in kinds:
            yield document


def names(manifest: str, kinds: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return kind and name of the objects of some kinds; errors: see `objects`."""
    return tuple(
        (str(document["kind"]), str(document["metadata"]["name"]))
        for document in objects(manifest, kinds)
    )
