"""How a component reports an invalid configuration: all problems together.

One template: `<field>: <problem>: must be <what is required>`, where the problem is
`invalid value "v"`, `unsupported value "v"`, `not set`, `unknown flag`, `no such file`
and the like. Rules: a value has at most 100 characters, and one line; the value of a
field that holds a secret is never shown.
"""

import dataclasses
import difflib
import pathlib
from collections.abc import Callable, Collection, Sequence

from lib.process import files, redaction

SHOWN_MAX = 100
"""Characters of a value that a message shows."""
_CLOSED_LIST = "one of "


def shown(text: str) -> str:
    """Return a text as one line without secrets, cut after SHOWN_MAX characters."""
    text = redaction.scrub(text)
    text = text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
    return "".join(map(_printable, text))


def quoted(text: str) -> str:
    """Return a value between double quotes, as `shown` gives it."""
    return '"' + shown(text).replace('"', r"\"") + '"'


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


def rejected(value: str, expected: str, hidden: bool = False) -> str:
    """Return what follows the field: why a value is rejected, and what is required.

    value: empty for a field that is not set. expected: read after "must be"; empty when
    nothing is to be added. hidden: the value may hold a secret.
    """
    problem = _invalid(value, expected, hidden) if value else "not set"
    return f"{problem}: must be {expected}" if expected else problem


def _invalid(value: str, expected: str, hidden: bool) -> str:
    if hidden:
        return f"invalid value {redaction.REDACTED}"
    is_closed = expected.startswith(_CLOSED_LIST)
    kind = "unsupported" if is_closed else "invalid"
    return f"{kind} value {quoted(value)}"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return ": did you mean x?" for a typo of a known name, else an empty text."""
    near = difflib.get_close_matches(name, sorted(known), 1, cutoff=0.75)
    return f": did you mean {near[0]}?" if near else ""


@dataclasses.dataclass(frozen=True, slots=True)
class FieldProblem:
    """One problem of the configuration.

    field: as its user knows it ("--secure-port", "[Global] auth-url"). value: None when
    it cannot be shown. expected: what is required, read after "must be". problem: the
    whole text after the field, for what is no invalid value.
    """

    field: str
    value: str | None
    expected: str
    is_secret: bool = False
    problem: str = ""

    def __str__(self) -> str:
        text = self.problem or self._text()
        return f"{self.field}: {text}" if self.field else text

    def _text(self) -> str:
        if self.value is None:
            return f"invalid value: must be {self.expected}"
        hidden = self.is_secret or redaction.is_secret(self.field)
        invalid = _invalid(self.value, self.expected, hidden)
        return f"{invalid}: must be {self.expected}"


def stated(field: str, problem: str) -> FieldProblem:
    """Return a problem that is no invalid value. problem: the text after the field."""
    return FieldProblem(field, None, "", problem=problem)


def not_set(field: str, expected: str = "") -> FieldProblem:
    """Return the problem of a required field without a value."""
    return FieldProblem(field, "", expected, problem=rejected("", expected))


def required(field: str, value: str, expected: str) -> FieldProblem:
    """Return the problem of a required field that is not set, or has a wrong value."""
    return FieldProblem(field, value, expected) if value else not_set(field, expected)


def unknown(field: str, kind: str, hint: str) -> FieldProblem:
    """Return the problem of a name that does not exist.

    kind: of the name, such as "flag" or "key". hint: text of `did_you_mean`, or another
    one that begins with a colon.
    """
    return stated(field, f"unknown {kind}{hint}")


def conflict(field: str, other: str) -> FieldProblem:
    """Return the problem of a field that excludes another one."""
    text = f"must not be set together with {other}"
    return stated(field, text)


def unusable_file(field: str, path: str) -> FieldProblem | None:
    """Return the problem of a file that cannot be read, None when it can.

    No such file, a directory and a denied permission have different reasons.
    """
    reason = files.unreadable(path)
    return _of_file(field, path, reason) if reason else None


def _of_file(field: str, path: str, reason: str) -> FieldProblem:
    return FieldProblem(field, path, "", problem=f"{shown(path)}: {reason}")


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds every reason.

    A problem in the words of a configuration file's own parser is a text.
    """

    def __init__(self, problems: Sequence[FieldProblem | str]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def collect(*checks: Callable[[], object]) -> tuple[FieldProblem | str, ...]:
    """Run checks that may raise a ConfigError; return all problems, each once."""
    problems: dict[str, FieldProblem | str] = {}
    for check in checks:
        try:
            check()
        except ConfigError as error:
            problems |= {str(problem): problem for problem in error.problems}
    return tuple(problems.values())


def require(problems: Sequence[FieldProblem | str]) -> None:
    """Continue only without problems.

    Raises:
        ConfigError: there are some.
    """
    if problems:
        raise ConfigError(problems)


def read_text(path: str, flag: str = "") -> str:
    """Return the text of a file. flag: the one that names the file.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8; its content is not shown.
    """
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = files.reason(error)
    except UnicodeDecodeError:
        reason = "not a text file in UTF-8"
    if flag:
        raise ConfigError([_of_file(flag, path, reason)]) from None
    raise ConfigError([stated(shown(path), reason)]) from None
