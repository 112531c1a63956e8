"""Patterns of floating subnets: pure.

Rule: users write patterns in annotations, so they are bounded in length and matched by
an engine that needs linear time, as that of the reference does.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer_subnet_match.go.
"""

import functools
import re
from collections.abc import Callable

import re2

from lib.cloud.openstack.http import client

LONGEST_PATTERN = 255
"""Characters. Source: Networking API v2, the longest name of a subnet."""
MOST_MEMORY = 1 << 20
"""Bytes that one compiled pattern may take."""
KEPT_PATTERNS = 256
_GROUP = re.compile(r"(\{[^{}]*\})")


class BadPatternError(Exception):
    """The pattern is too long, or no pattern."""


def matches(pattern: str) -> Callable[[str], bool]:
    """Return the test of a name: exact, glob, or "~regex" of the whole; "!" negates.

    Globs have *, ?, [ab] and {one,other}; regular expressions the syntax of RE2. An
    empty pattern matches every name.

    Raises:
        BadPatternError: `is_pattern` rejects it.
    """
    if not pattern:
        return lambda name: True
    if len(pattern) > LONGEST_PATTERN:
        raise BadPatternError(f"longer than {LONGEST_PATTERN} characters")
    negated = pattern.startswith("!")
    bare = pattern.removeprefix("!")
    compiled = _compiled(bare[1:] if bare.startswith("~") else _expression(bare))
    return lambda name: (compiled.fullmatch(name) is not None) != negated


def is_pattern(text: str) -> bool:
    """Report whether `matches` accepts a pattern."""
    try:
        matches(text)
    except BadPatternError:
        return False
    return True


@functools.lru_cache(KEPT_PATTERNS)
def _compiled(expression: str) -> "re2._Regexp":
    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeError) as error:
        raise BadPatternError("not a regular expression") from error


def _expression(glob: str) -> str:
    """Build the regular expression of a glob.

    Source: gopkg.in/godo.v2/glob, with which the reference reads them.
    """
    return "(?s)" + "".join(
        (
            f"(?:{'|'.join(map(_plain, part[1:-1].split(',')))})"
            if _GROUP.fullmatch(part)
            else _plain(part)
        )
        for part in _GROUP.split(glob)
    )


def _plain(glob: str) -> str:
    """Build the expression of a glob without groups. Source: Python, fnmatch."""
    built: list[str] = []
    at = 0
    while at < len(glob):
        char, at = glob[at], at + 1
        if char in "*?":
            built.append({"*": ".*", "?": "."}[char])
        elif char == "[" and (end := _class_end(glob, at)):
            built.append(_class(glob[at:end]))
            at = end + 1
        else:
            built.append(re2.escape(char))
    return "".join(built)


def _class_end(glob: str, at: int) -> int:
    """Return the index of the bracket that closes a class; 0: none does."""
    first = at + 1 if glob.startswith("!", at) else at
    return max(glob.find("]", first + 1), 0)


def _class(inside: str) -> str:
    """Build a character class; one in which no character can be matches nothing."""
    negated = inside.startswith("!")
    allowed: list[str] = []
    rest = inside.removeprefix("!")
    while rest:
        low, dash, high = rest[0], rest[1:2], rest[2:3]
        if dash == "-" and high:
            rest = rest[3:]
            if low <= high:
                allowed.append(f"{re2.escape(low)}-{re2.escape(high)}")
        else:
            rest = rest[1:]
            allowed.append(re2.escape(low))
    if not allowed:
        return "." if negated else r"[^\x00-\x{10FFFF}]"
    return f"[{'^' if negated else ''}{''.join(allowed)}]"


def tag_filter(expression: str) -> client.Query:
    """Return Neutron's list filter of a tag expression.

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
