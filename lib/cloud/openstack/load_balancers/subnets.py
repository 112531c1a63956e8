"""Patterns of floating subnets: pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer_subnet_match.go.
"""

import fnmatch
import re
from collections.abc import Callable

from lib.cloud.openstack import client

_GROUP = re.compile(r"(\{[^{}]*\})")


def matches(pattern: str) -> Callable[[str], bool]:
    """Give the test of a name: exact, glob, or "~regex" of the whole; "!" negates.

    Globs know *, ?, [ab] and {one,other}.

    An empty pattern fits every name. The pattern must be one that compiles.
    """
    if not pattern:
        return lambda name: True
    negated = pattern.startswith("!")
    bare = pattern.removeprefix("!")
    whole = bare[1:] if bare.startswith("~") else _expression(bare)
    compiled = re.compile(whole)
    return lambda name: (compiled.fullmatch(name) is not None) != negated


def _expression(glob: str) -> str:
    """Turn a glob into a regular expression.

    Source: gopkg.in/godo.v2/glob, with which the reference reads them.
    """
    return "".join(
        (
            f"(?:{'|'.join(map(_plain, part[1:-1].split(',')))})"
            if _GROUP.fullmatch(part)
            else _plain(part)
        )
        for part in _GROUP.split(glob)
    )


def _plain(glob: str) -> str:
    return fnmatch.translate(glob).removesuffix(r"\Z")


def tag_filter(expression: str) -> client.Query:
    """Give Neutron's list filter of a tag expression.

    "a,b": any of them; "&a,b": all; "!a,b": none; "!&a,b": at least one is missing.

    Source: Networking API v2, "Filtering by tags".
    """
    if not expression:
        return ()
    negated = expression.startswith("!")
    bare = expression.removeprefix("!")
    needs_all = bare.startswith("&")
    tags = ",".join(
        part.strip() for part in bare.removeprefix("&").split(",") if part.strip()
    )
    key = {
        (False, False): "tags-any",
        (False, True): "tags",
        (True, False): "not-tags-any",
        (True, True): "not-tags",
    }[negated, needs_all]
    return ((key, tags),)
