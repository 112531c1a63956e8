"""What a user of the simulated engine asks of it. Pure, but for the counts of faults.

One rule per line; NAME: of an object, PATH: below /ovirt-engine, both with * and ? as
in a shell. TIMES: how often, - for always.

    delay TRANSITION SECONDS         another delay; * for all
    hold TRANSITION [NAME]           it does not happen
    fail TRANSITION [NAME]           its job fails
    without-agent [NAME]             the guest of a VM has no agent
    ignore-shutdown [NAME]           the guest of a VM ignores a shutdown
    hot-plug-fails [NAME]            of a VM
    taken-id-fails-later             the second variant of disk-id-taken
    version MAJOR.MINOR              of the API
    quota NAME GIB                   of a domain: for all of its disks
    hide NAME                        no permission: objects disappear from lists
    forbid METHOD PATH               403
    refuse METHOD PATH STATUS TIMES [TEXT...]
    html METHOD PATH STATUS TIMES    an error page of the gateway
    pause METHOD PATH SECONDS TIMES  the response is late
    no-response METHOD PATH TIMES    carried out, then the connection ends
    no-effect METHOD PATH TIMES      a response, but nothing is carried out
    silence METHOD PATH TIMES        no response, the connection stays open
"""

import dataclasses
import fnmatch
from collections.abc import Callable, Mapping, Sequence

from lib.lab.zvirt.transitions import RULES

_EVERY = "*"
_ENDLESS = "-"
HTTP_FAULTS = ("refuse", "html", "pause", "no-response", "no-effect", "silence")
_LEAST: Mapping[str, int] = {
    "delay": 2,
    "hold": 1,
    "fail": 1,
    "without-agent": 0,
    "ignore-shutdown": 0,
    "hot-plug-fails": 0,
    "taken-id-fails-later": 0,
    "version": 1,
    "quota": 2,
    "hide": 1,
    "forbid": 2,
    "refuse": 4,
    "html": 4,
    "pause": 4,
    "no-response": 3,
    "no-effect": 3,
    "silence": 3,
}
"""Number of words that each rule needs."""
RULE_NAMES = tuple(_LEAST)


@dataclasses.dataclass(slots=True)
class Line:
    """One rule. left: how often it still applies; None: without end."""

    name: str
    words: Sequence[str]
    left: int | None = None

    def matches_request(self, method: str, path: str) -> bool:
        """Report whether a rule is about a request."""
        return (
            fnmatch.fnmatchcase(method, self.words[0])
            and fnmatch.fnmatchcase(path, self.words[1])
            and self.left != 0
        )


class EngineSettings:
    """All rules in force."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        """lines: see the module.

        Raises:
            ValueError: a line is not as described, or names no transition.
        """
        self._lines = [parse(line) for line in lines]

    def replace(self, lines: Sequence[str]) -> None:
        """Put other rules in force.

        Raises:
            ValueError: a line is not as described; nothing is changed then.
        """
        self._lines = [parse(line) for line in lines]

    def add(self, line: str) -> None:
        """Put one more rule in force.

        Raises:
            ValueError: the line is not as described.
        """
        self._lines.append(parse(line))

    def delay_s(self, rule: str) -> float:
        """Return the delay of a transition; * is not for one that takes no time."""
        delays = {line.words[0]: float(line.words[1]) for line in self._of("delay")}
        usual = RULES[rule].delay_s or 0.0
        return delays.get(rule, delays.get(_EVERY, usual) if usual else usual)

    def version(self) -> tuple[int, int] | None:
        """Return the version of the API; None: the usual one."""
        for line in self._of("version"):
            major, minor = line.words[0].split(".")
            return int(major), int(minor)
        return None

    def quota_gib(self, name: str) -> float | None:
        """Return the size that all disks of a domain may have; None: any."""
        quotas = (
            float(line.words[1])
            for line in self._of("quota")
            if fnmatch.fnmatchcase(name, line.words[0])
        )
        return next(quotas, None)

    def is_held(self, rule: str, name: str) -> bool:
        """Report whether a transition of an object does not happen."""
        return any(_is_about(line, rule, name) for line in self._of("hold"))

    def fails(self, rule: str, name: str) -> bool:
        """Report whether a transition of an object fails."""
        return any(_is_about(line, rule, name) for line in self._of("fail"))

    def has(self, rule: str, name: str = "") -> bool:
        """Report whether a rule without a transition is about an object."""
        return any(
            fnmatch.fnmatchcase(name, line.words[0] if line.words else _EVERY)
            for line in self._of(rule)
        )

    def is_forbidden(self, method: str, path: str) -> bool:
        """Report whether a request lacks its permit."""
        return any(line.matches_request(method, path) for line in self._of("forbid"))

    def http_fault(self, method: str, path: str) -> Line | None:
        """Return what befalls a request, counting it; None: nothing."""
        for line in self._lines:
            if line.name in HTTP_FAULTS and line.matches_request(method, path):
                line.left = None if line.left is None else line.left - 1
                return line
        return None

    def _of(self, name: str) -> Sequence[Line]:
        return [line for line in self._lines if line.name == name]


def _is_about(line: Line, rule: str, name: str) -> bool:
    pattern = line.words[1] if len(line.words) > 1 else _EVERY
    return line.words[0] in (rule, _EVERY) and fnmatch.fnmatchcase(name, pattern)


def _check_transition(words: Sequence[str]) -> bool:
    return words[0] == _EVERY or RULES[words[0]].delay_s is not None


def _check_delay(words: Sequence[str]) -> bool:
    return _check_transition(words) and float(words[1]) >= 0


def _check_status(words: Sequence[str]) -> bool:
    return 400 <= int(words[2]) < 600


def _check_version(words: Sequence[str]) -> bool:
    parts = words[0].split(".")
    return len(parts) == 2 and all(part.isdigit() for part in parts)


_CHECKS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "delay": _check_delay,
    "hold": _check_transition,
    "fail": _check_transition,
    "refuse": _check_status,
    "html": _check_status,
    "version": _check_version,
    "quota": lambda words: float(words[1]) >= 0,
    "pause": lambda words: float(words[2]) >= 0,
}


def parse(line: str) -> Line:
    """Parse one rule.

    Raises:
        ValueError: it is not as described.
    """
    name, *words = line.split() or [""]
    least = _LEAST.get(name)
    if least is None or len(words) < least:
        raise ValueError(f"invalid rule {line!r}")
    try:
        is_sound = name not in _CHECKS or _CHECKS[name](words)
        left = _times(name, words)
    except (KeyError, ValueError) as error:
        raise ValueError(f"invalid rule {line!r}") from error
    if not is_sound:
        raise ValueError(f"invalid rule {line!r}")
    return Line(name, words, left)


def _times(name: str, words: Sequence[str]) -> int | None:
    if name not in HTTP_FAULTS:
        return None
    text = words[_LEAST[name] - 1]
    return None if text == _ENDLESS else int(text)
