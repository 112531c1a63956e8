"""Turns the end of a helm run into nothing, or an error of the right class. Pure."""

import base64
import functools
import json
from collections.abc import Iterable, Mapping

from lib.helm import child, errors
from lib.process import redaction

MESSAGE_MAX = 300
"""Characters of helm's output that an error shows."""
SECRET_LEAST = 6
"""Shorter texts are not removed: they would tear words apart."""

_BY_TEXT: tuple[tuple[str, type[errors.HelmError]], ...] = (
    ("another operation (install/upgrade/rollback) is in progress", errors.Busy),
    ("kubernetes cluster unreachable", errors.Unreachable),
    ("connection refused", errors.Unreachable),
    ("are forbidden", errors.ImmutableField),
    ("field is immutable", errors.ImmutableField),
    ("execution error at", errors.DoesNotRender),
    ("error converting yaml", errors.DoesNotRender),
    ("parse error", errors.DoesNotRender),
    ("values don't meet the specifications of the schema", errors.DoesNotRender),
    ("template:", errors.DoesNotRender),
    ("missing in charts/ directory", errors.DoesNotRender),
    ("unable to build kubernetes objects", errors.DoesNotRender),
    ("invalid ownership metadata", errors.NotOwned),
    ("cannot be imported into the current release", errors.NotOwned),
    ("is forbidden:", errors.Forbidden),
)
"""Parts of helm's own messages in lower case; the first that occurs decides.

They select the text of a condition only: no decision depends on them."""


def require(ended: child.Ended, operation: str, secrets: frozenset[str]) -> None:
    """Return if the run succeeded.

    operation: such as "upgrade of openstack-keystone". secrets: texts to be removed.

    Raises:
        HelmError: it did not.
    """
    if ended.canceled:
        raise errors.Canceled(f"{operation}: canceled")
    text = scrub(ended.errors, secrets)
    if ended.timed_out:
        raise errors.TimedOut(f"{operation}: not finished in time: {_last(text)}")
    if ended.code != 0:
        raise classify(text)(f"{operation}: {_last(text) or f'exit {ended.code}'}")


def classify(text: str) -> type[errors.HelmError]:
    """Return the class of the error that helm's output describes."""
    lower = text.lower()
    return next((kind for part, kind in _BY_TEXT if part in lower), errors.Failed)


def scrub(text: str, secrets: Iterable[str]) -> str:
    """Remove secrets, in each form in which a program prints them."""
    for form in _forms(frozenset(secrets)):
        text = text.replace(form, redaction.REDACTED)
    return redaction.scrub(text)


@functools.lru_cache(maxsize=4)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """Return the forms of secrets, the longest first, as one may contain another."""
    forms = {
        form
        for secret in secrets
        for line in (secret, secret.strip(), *secret.splitlines())
        for form in (line.strip(), json.dumps(line)[1:-1], repr(line)[1:-1])
    }
    forms |= {base64.b64encode(secret.encode()).decode() for secret in secrets}
    usable = (form for form in forms if len(form) >= SECRET_LEAST)
    return tuple(sorted(usable, key=len, reverse=True))


def texts_in(tree: object) -> frozenset[str]:
    """Return every text that a tree of values holds."""
    if isinstance(tree, Mapping):
        return frozenset().union(*map(texts_in, tree.values()))
    if isinstance(tree, list | tuple):
        return frozenset().union(*map(texts_in, tree))
    return frozenset((tree,)) if isinstance(tree, str) else frozenset()


def _last(text: str) -> str:
    """Return helm's error on one line; warnings before it are dropped."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    starts = [i for i, line in enumerate(lines) if line.startswith("Error:")]
    shown = " ".join(lines[starts[-1] :] if starts else lines[-3:])
    shown = shown.removeprefix("Error: ")
    return shown if len(shown) <= MESSAGE_MAX else shown[:MESSAGE_MAX] + "..."
