"""How a component reports a wrong configuration: all problems together."""

import dataclasses
import pathlib
from collections.abc import Sequence

from lib.process import redaction


@dataclasses.dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong.

    field: as its user knows it ("--secure-port", "[Global] auth-url"). value: what
    was given, None when nothing was. expected: what would be right, to be read after
    "want". The value of a field with the name of a secret is never shown.
    """

    field: str
    value: str | None
    expected: str
    is_secret: bool = False

    def __str__(self) -> str:
        want = f"want {self.expected}"
        if self.value is None:
            return f"{self.field}: {want}"
        hidden = self.is_secret or redaction.is_secret(self.field)
        shown = redaction.REDACTED if hidden else repr(redaction.scrub(self.value))
        return f"{self.field}: {shown}: {want}"


class ConfigError(Exception):
    """The configuration can't be used; `problems` holds every reason found.

    A problem in the words of a configuration file's own parser is a text.
    """

    def __init__(self, problems: Sequence[FieldProblem | str]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def require(problems: Sequence[FieldProblem]) -> None:
    """Go on only without problems.

    Raises:
        ConfigError: there are some.
    """
    if problems:
        raise ConfigError(problems)


def read_text(path: str, flag: str = "") -> str:
    """Return the text of a file. flag: the one that names the file.

    Raises:
        ConfigError: it is no text, or it can't be read; its content is not shown.
    """
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # The decoder's own words quote the file, which may hold passwords.
        reason = str(error) if isinstance(error, OSError) else type(error).__name__
        expected = f"a text file that can be read ({reason})"
        field, value = (flag, path) if flag else (path, None)
        raise ConfigError([FieldProblem(field, value, expected)]) from None
