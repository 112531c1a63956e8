"""Checks the kubeconfig that a configuration contains. Pure.

A Secret has no files beside it: a kubeconfig that names some, or that runs a program,
would work on the machine of its author alone.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence

from lib.discovery.findings import is_document, part_of, text_of
from lib.process import config, yaml_documents

_FILES = (
    "certificate-authority",
    "client-certificate",
    "client-key",
    "tokenFile",
    "exec",
    "auth-provider",
)


def decode(text: str) -> str:
    """Return the kubeconfig of base64; an empty text where there is none."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def problems(field: str, text: str) -> Iterator[config.FieldProblem]:
    """Yield the problems of a kubeconfig, none of which shows a part of it."""
    try:
        document = next(iter(yaml_documents.read(field, text)), None)
    except config.ConfigError:
        document = None
    if not is_document(document):
        yield config.stated(field, "must be a kubeconfig in YAML, encoded in base64")
        return
    context = part_of(
        _named(document, "contexts", text_of(document, "current-context"))
    )
    inner = part_of(context, "context")
    cluster = _named(document, "clusters", text_of(inner, "cluster"))
    user = _named(document, "users", text_of(inner, "user"))
    if not inner:
        yield config.stated(f"{field} current-context", "names no context of it")
    elif not text_of(part_of(cluster, "cluster"), "server").startswith("https://"):
        text_of_server = "must be the https URL of the parent's API server"
        yield config.stated(f"{field} server", text_of_server)
    for entry in (part_of(cluster, "cluster"), part_of(user, "user")):
        for key in _FILES:
            if key in entry:
                problem = "must not be set: pods have no such file or program"
                yield config.stated(f"{field} {key}", problem)
    if inner and not part_of(user, "user"):
        yield config.stated(f"{field} user", "must be a user with a token")


def _named(
    document: Mapping[str, object], section: str, name: str
) -> Mapping[str, object]:
    entries = document.get(section)
    items: Sequence[object] = entries if isinstance(entries, list) else ()
    for entry in items:
        if is_document(entry) and name and entry.get("name") == name:
            return entry
    return {}
