"""Annotations of a Service that nothing reads, because their keys are misspelt: pure.

Under the prefixes of OpenStack every unknown name is reported. Other clouds and tools
have names under the other prefixes too: there only one that is near a known one is.
"""

import difflib
import functools
from collections.abc import Iterable, Iterator

from lib.cloud import absence_limit
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import Problem

KNOWN = keys.READ | keys.WRITTEN | {absence_limit.CONFIRM_ANNOTATION}
MOST_COMPARED = 100
"""Keys of one Service with another prefix, or with one that many tools use."""
_OWN_PREFIXES = ("loadbalancer.openstack.org", "loadbalancer.openstack.deckhouse.io")
_KEY_BY_NAME = {key.partition("/")[2]: key for key in sorted(KNOWN, reverse=True)}
"""A known key for each name: of the reference where two prefixes have it."""
_NAMES_BY_PREFIX = {
    prefix: [name for at, _, name in split if at == prefix]
    for split in [[key.partition("/") for key in sorted(KNOWN)]]
    for prefix, _, _ in split
}
_TYPO, _SIMILAR = 0.85, 0.6
"""Similarities, from 0 to 1: of a typo, and of a name that is worth a hint."""


def problems(annotations: Iterable[str]) -> list[Problem]:
    """Return one problem for all annotations with misspelt keys."""
    misspelt = sorted(_misspelt(sorted(set(annotations) - KNOWN)))
    if not misspelt:
        return []
    texts = [f"{key}{_hint(key)}" for key in misspelt[: keys.MOST_NAMED]]
    if len(misspelt) > len(texts):
        texts.append(f"and {len(misspelt) - len(texts)} more")
    message = f"unknown annotations, which are ignored: {', '.join(texts)}"
    return [Problem(OctaviaReason.UNKNOWN_ANNOTATION, message)]


def _misspelt(unknown: Iterable[str]) -> Iterator[str]:
    compared = 0
    for key in unknown:
        prefix, _, name = key.partition("/")
        if prefix in _OWN_PREFIXES:
            yield key
        elif compared < MOST_COMPARED and (
            prefix in _NAMES_BY_PREFIX or name in _KEY_BY_NAME
        ):
            compared += 1
            if _is_typo(prefix, name):
                yield key


@functools.lru_cache(maxsize=1024)
def _is_typo(prefix: str, name: str) -> bool:
    """Report whether either the name or the prefix is a known one but for a typo."""
    if names := _NAMES_BY_PREFIX.get(prefix):
        return name in _KEY_BY_NAME or bool(_near(name, names, _TYPO))
    return bool(_near(prefix, _NAMES_BY_PREFIX, _TYPO))


def _hint(key: str) -> str:
    prefix, _, name = key.partition("/")
    near = _KEY_BY_NAME.get(name, "")
    if not near and (own := _near(name, _NAMES_BY_PREFIX.get(prefix, ()), _SIMILAR)):
        near = f"{prefix}/{own}"
    if not near and (other := _near(name, _KEY_BY_NAME, _SIMILAR)):
        near = _KEY_BY_NAME[other]
    return f" (did you mean {near}?)" if near else ""


def _near(text: str, known: Iterable[str], cutoff: float) -> str:
    nearest = difflib.get_close_matches(text.lower(), list(known), 1, cutoff)
    return nearest[0] if nearest else ""
