"""Typed reading of one section of cloud.conf, with all its problems and warnings."""

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import TypeVar

from lib.cloud.openstack.config import gcfg
from lib.process import config, kinds, redaction

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
"""Source: gopkg.in/gcfg.v1 types/bool.go; case is ignored."""

SECRETS = frozenset(
    {"password", "trustee-password", "token", "application-credential-secret"}
)
"""Keys whose values are never shown."""

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_HOLDS_SECRET = re.compile(
    r"://[^/?#\s]*@|(?:password|passwd|secret|token)[\s\"']*[=:]", re.IGNORECASE
)
"""A URL with user information; a line that lost its end and runs into the next key."""

T = TypeVar("T")


def shown(value: str) -> str:
    """Return a value as a message may show it: hidden where it may hold a secret."""
    return redaction.REDACTED if may_hold_secret(value) else config.quoted(value)


def may_hold_secret(value: str) -> bool:
    """Report whether a value must be hidden, whatever its key."""
    return _HOLDS_SECRET.search(value) is not None


def unknown(kind: str, name: str, known: Collection[str]) -> str:
    """Return the end of a warning about a key or section that does not exist."""
    return f"unknown {kind}{config.did_you_mean(name, known)}; ignored"


@dataclasses.dataclass
class ConfigFindings:
    """Problems, with which the start fails, and warnings.

    unknown: warnings about keys that do not exist: one may be a required key, misspelt.
    """

    problems: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)


class SectionReader:
    """Reads keys of one section; a key that is not known is reported at the end.

    The last value of a repeated key counts, except for lists.
    """

    def __init__(self, section: gcfg.Section, findings: ConfigFindings) -> None:
        self._section = section
        self._findings = findings
        self._asked: set[str] = set()
        sub = f' "{section.subsection}"' if section.subsection else ""
        self._title = f"[{section.name}{sub}]"

    def text(self, key: str, default: str = "") -> str:
        """Return a text; empty when it is set to nothing."""
        values = self._values(key)
        return values[-1] if values else default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return all values of a repeatable key; an empty one is none."""
        return tuple(filter(None, self._values(key)))

    def _values(self, key: str) -> tuple[str, ...]:
        self._asked.add(key)
        return self._section.values.get(key, ())

    def boolean(self, key: str, default: bool) -> bool:
        """Return a switch."""
        return self._parsed(key, default, _boolean, "true or false")

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """Return a whole number of at least `least`."""

        def number(text: str) -> int:
            value = int(text, 16) if text.lower().startswith("0x") else int(text)
            if value < least:
                raise ValueError
            return value

        return self._parsed(key, default, number, f"a whole number, at least {least}")

    def seconds(self, key: str, default: float) -> float:
        """Return the seconds of a duration, never negative."""

        def duration(text: str) -> float:
            value = kinds.read_duration(text)
            if value < 0:
                raise ValueError
            return value

        return self._parsed(key, default, duration, 'a duration such as "5s" or "1m"')

    def identifier(self, key: str) -> str:
        """Return the ID of an object of the cloud; warn of one that can't be an ID."""
        value = self.text(key).strip()
        if value and not _UUID.fullmatch(value):
            self.reject(key, value, "a UUID", "no object has this ID")
        return self.text(key)

    def choice(self, key: str, default: str, known: Collection[str]) -> str:
        """Return one of `known`."""

        def option(text: str) -> str:
            if text not in known:
                raise ValueError
            return text

        return self._parsed(key, default, option, "one of " + ", ".join(known))

    def problem(self, key: str, value: str, right: str) -> None:
        """Report a value that cannot be used, and what is required.

        The value of a secret is hidden, its absence is not.
        """
        text = config.rejected(value, right, _is_hidden(key, value))
        self._findings.problems.append(f"{self._title} {key}: {text}")

    def conflict(self, key: str, other: str) -> None:
        """Report two keys of which at most one may be set."""
        text = f"must not be set together with {other}"
        self._findings.problems.append(f"{self._title} {key}: {text}")

    def reject(self, key: str, value: str, right: str, effect: str) -> None:
        """Warn of a value that is not used, or that will fail. effect: what happens."""
        text = config.rejected(value, right, _is_hidden(key, value))
        self.warn(f"{key}: {text}; {effect}")

    @property
    def has_problems(self) -> bool:
        """Report whether anything of the configuration is wrong so far."""
        return bool(self._findings.problems)

    def warn(self, text: str) -> None:
        """Report a warning about the section."""
        self._findings.warnings.append(f"{self._title} {text}")

    def finish(self) -> None:
        """Report the keys that are not known, and values that may be cut."""
        for key in sorted(self._section.cut):
            self.warn(
                f"{key}: the value ends before # or ;, where a comment begins: put it"
                " in double quotes if that is a part of it"
            )
        for key in self._section.values:
            if key not in self._asked:
                others = self._asked - self._section.values.keys()
                text = f"{key}: {unknown('key', key, others)}"
                self.warn(text)
                self._findings.unknown.append(f"{self._title} {text}")

    def _parsed(self, key: str, default: T, parse: Callable[[str], T], right: str) -> T:
        values = self._values(key)
        if not values:
            return default
        try:
            return parse(values[-1].strip())
        except ValueError:
            self.problem(key, values[-1], right)
            return default


def _is_hidden(key: str, value: str) -> bool:
    return key in SECRETS or may_hold_secret(value)


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError
