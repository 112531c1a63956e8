"""A component's command line: a table of flags, read exactly as Go's pflag does.

Rules: a flag begins with two hyphens; one hyphen takes one-letter names only. A
boolean has its value after "=" or none. Underscores in a name are hyphens. What is
not a known flag, nor the value of one, is an error. All problems are reported together.

Source: github.com/spf13/pflag flag.go; k8s.io/component-base cli/flag
WordSepNormalizeFunc.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar, cast

from lib.process import config, kinds, redaction

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


GENERAL = "General"
LEADER_ELECTION = "Leader election"
NODES = "Nodes"
NODE_DELETION = "Node deletion"
LOAD_BALANCERS = "Load balancers"
ROUTES = "Routes"
VOLUMES = "Volumes"
DISCOVERY = "Discovery"
HELM = "Helm"
SERVING = "Serving"
LOGGING = "Logging"
GROUPS = (
    *(GENERAL, NODES, NODE_DELETION, LOAD_BALANCERS, ROUTES, VOLUMES, DISCOVERY, HELM),
    *(LEADER_ELECTION, SERVING, LOGGING),
)
"""Groups of --help, in their order."""


# No slots: Python 3.11 then could not make it as Flag[...](...).
@dataclasses.dataclass(frozen=True)
class Flag(Generic[T_co]):
    """One flag.

    name: without hyphens before it. short: its one letter, if any. no_effect: why it
    is accepted but does nothing, to be read after "because"; empty for one that works.
    is_secret: its value must not be shown. group: of --help. is_required: its value
    must not be empty; checked by the daemon, shown by --help.
    """

    name: str
    kind: kinds.FlagKind[T_co]
    default: T_co
    help: str
    short: str = ""
    no_effect: str = ""
    is_secret: bool = False
    group: str = GENERAL
    is_required: bool = False


class Values:
    """What the flags of a table were set to; read with the flag itself as the key.

    A table may have another flag of that name, as one without effect.
    """

    def __init__(
        self, flags: Sequence[Flag[object]], values: Mapping[str, object]
    ) -> None:
        self._flags = tuple(flags)
        self._names = frozenset(flag.name for flag in flags)
        self._given = MappingProxyType(dict(values))

    def __getitem__(self, flag: Flag[T]) -> T:
        if flag.name not in self._names:
            raise KeyError(flag.name)
        return cast(T, self._given.get(flag.name, flag.default))

    def is_given(self, flag: Flag[object]) -> bool:
        """Report whether the flag was on the command line."""
        return flag.name in self._given

    def changed(self) -> list[str]:
        """Return the flags whose values differ from their defaults, as written.

        Values of secrets are hidden.
        """
        return [
            f"--{flag.name}={_shown(flag, self[flag])}"
            for flag in self._flags
            if self[flag] != flag.default
        ]

    def without_effect(self) -> tuple[Flag[object], ...]:
        """Return the flags that were given and do nothing, in the table's order."""
        return tuple(
            flag for flag in self._flags if flag.no_effect and self.is_given(flag)
        )


def _shown(flag: Flag[T], value: T) -> str:
    is_secret = flag.is_secret or redaction.is_secret(flag.name)
    return redaction.REDACTED if is_secret else flag.kind.show(value)


class Log(Protocol):
    """The one method of a logger that is needed here."""

    def warning(self, event: str, *, flag: str, reason: str) -> object:
        """Log at warning level."""
        ...


def warn(values: Values, log: Log) -> None:
    """Warn once about each flag without effect that was set, with the reason."""
    for flag in values.without_effect():
        log.warning("flag has no effect", flag=f"--{flag.name}", reason=flag.no_effect)


@dataclasses.dataclass(frozen=True, slots=True)
class _Given:
    """One flag met on the command line; text is None when it needs one."""

    flag: Flag[object]
    text: str | None


_Met = _Given | config.FieldProblem


def parse(flags: Sequence[Flag[object]], arguments: Sequence[str]) -> Values:
    """Read the command line; `arguments` are those after the program's name.

    Raises:
        ConfigError: with every problem, in the order of the command line.
    """
    values, problems = sift(flags, arguments)
    config.require(problems)
    return values


def sift(
    flags: Sequence[Flag[object]], arguments: Sequence[str]
) -> tuple[Values, tuple[config.FieldProblem, ...]]:
    """Parse the command line and collect all errors.

    A flag with a problem has its default among the values.
    """
    values: dict[str, object] = {}
    problems: list[config.FieldProblem] = []
    for met in _read(flags, arguments):
        problem = met if isinstance(met, config.FieldProblem) else _set(met, values)
        if problem is not None:
            problems.append(problem)
    return Values(flags, values), tuple(problems)


def _set(met: _Given, values: dict[str, object]) -> config.FieldProblem | None:
    flag = met.flag
    name, expected = f"--{flag.name}", flag.kind.expected
    if met.text is None:
        return config.not_set(name, expected)
    problem = config.FieldProblem(name, met.text, expected, flag.is_secret)
    try:
        value = flag.kind.read(met.text)
    except ValueError:
        return problem
    before = values.get(flag.name)
    values[flag.name] = value if before is None else flag.kind.join(before, value)
    return None


def _read(flags: Sequence[Flag[object]], arguments: Sequence[str]) -> Iterator[_Met]:
    """Split arguments into flags, their values and everything else."""
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            break
        if argument.startswith("--"):
            yield _read_long(flags, argument, rest)
        elif argument.startswith("-") and len(argument) > 1:
            yield from _read_short(flags, argument, rest)
        elif argument:
            yield _unexpected(argument)
    yield from (_unexpected(argument) for argument in rest if argument)


def _unexpected(argument: str) -> config.FieldProblem:
    shown = config.quoted(argument)
    text = f"unexpected argument: {shown}: must be a flag (--name=value)"
    return config.FieldProblem("", argument, "", problem=text)


def _read_long(flags: Sequence[Flag[object]], argument: str, rest: list[str]) -> _Met:
    """Read --name, --name=value or --name value; takes the latter from `rest`."""
    written, equals, text = argument[2:].partition("=")
    name = written.replace("_", "-")
    flag = next((flag for flag in flags if flag.name == name), None)
    if flag is None:
        if not equals and rest and not rest[0].startswith("-"):
            rest.pop(0)  # meant for it, as pflag assumes as well
        return _unknown(flags, f"--{written}", name)
    if equals:
        return _Given(flag, text)
    return _Given(flag, _next(flag, rest))


def _next(flag: Flag[object], rest: list[str]) -> str | None:
    if flag.kind.implied is not None:
        return flag.kind.implied
    return rest.pop(0) if rest else None


def _read_short(
    flags: Sequence[Flag[object]], argument: str, rest: list[str]
) -> Iterator[_Met]:
    """Read -v4, -v=4, -v 4, or several letters of flags that need no value."""
    letters = argument[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = next((flag for flag in flags if flag.short == letter), None)
        if flag is None:
            name = argument[1:].partition("=")[0].replace("_", "-")
            yield _unknown(flags, argument.partition("=")[0], name)
            return
        if letters.startswith("=") and len(letters) > 1:
            yield _Given(flag, letters[1:])
            return
        if flag.kind.implied is None and letters:
            yield _Given(flag, letters)
            return
        yield _Given(flag, _next(flag, rest))


def _unknown(
    flags: Sequence[Flag[object]], written: str, name: str
) -> config.FieldProblem:
    hint = config.did_you_mean(f"--{name}", [f"--{flag.name}" for flag in flags])
    return config.unknown(config.shown(written), "flag", hint or ": see --help")
