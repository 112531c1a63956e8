"""Finds secrets in rendered manifests that are the public defaults of a chart.

The manifests are compared with a render of the chart's defaults: a password, key or
token of the defaults that is still used is public. A list of weak words would find
only some of them.
"""

import base64
import binascii
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

_SECRET_KEY = re.compile(
    r"(password|passwd|secret|secret_key|shared_secret|cookie|passphrase|token"
    r"|kek|tmpurlkey|private_key|heartbeat_key|auth_encryption_key)$",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(r"""^\s*['"]?([\w.-]+)['"]?\s*[:=]\s*(\S.*?)\s*$""")
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_NO_VALUE = frozenset({"", "null", "none", "true", "false", "{}", "[]"})


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Secret whose value is public; the value itself is not kept."""

    object: str
    key: str
    field: str


def find(
    manifests: Iterable[Mapping[str, Any]], defaults: Iterable[Mapping[str, Any]]
) -> tuple[Finding, ...]:
    """Return the secrets of manifests that a render of the defaults holds too."""
    return find_texts(manifests, frozenset(value for _, value in secrets(defaults)))


def find_texts(
    manifests: Iterable[Mapping[str, Any]], public: Collection[str]
) -> tuple[Finding, ...]:
    """Return the secrets of manifests that are among public texts."""
    return tuple(
        sorted({finding for finding, value in secrets(manifests) if value in public})
    )


def of_values(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the secrets in the default values of a chart.

    The field `secrets` of openstack-helm holds names of Secrets and is skipped.
    """
    texts: set[str] = set()
    for key, value in values.items():
        if isinstance(value, Mapping) and key != "secrets":
            texts |= of_values(value)
        elif isinstance(value, str) and _SECRET_KEY.search(str(key)):
            texts.add(value)
    return frozenset(text for text in texts if text.lower() not in _NO_VALUE)


def secrets(
    manifests: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Finding, str]]:
    """Return every password, key and token in the Secrets."""
    for manifest in manifests:
        if manifest.get("kind") != "Secret":
            continue
        name = f"Secret/{manifest['metadata']['name']}"
        for key, text in _texts(manifest):
            for field, value in _values(key, text):
                if value.lower() not in _NO_VALUE and " " not in value:
                    yield Finding(name, key, field), value


def _texts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the decoded texts of a Secret by key."""
    for key, value in (manifest.get("stringData") or {}).items():
        yield key, str(value)
    for key, value in (manifest.get("data") or {}).items():
        yield key, _decoded(str(value or ""))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text


def _values(key: str, text: str) -> Iterator[tuple[str, str]]:
    """Return the secrets of a text: the whole of it, assignments, passwords of URLs."""
    if _SECRET_KEY.search(key):
        yield key, text.strip()
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match and _SECRET_KEY.search(match[1]):
            yield match[1], match[2].rstrip(",").strip("'\"")
        for password in _URL_PASSWORD.findall(line):
            yield "password of a URL", password
