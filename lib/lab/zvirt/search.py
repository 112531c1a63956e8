"""The search language of the API. Pure.

Source: 1.3: `FIELD REL VALUE [and|or ...] [sortby FIELD asc|desc] [page N]`, with
parentheses, double quotes and the wildcard *. A bare word is searched in all texts.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

Value = str | float | None
Values = Sequence[Value]
Predicate = Callable[[Mapping[str, Values]], bool]
"""Judges an object by its fields."""
_WORD = re.compile(r'\s*("(?:[^"])*"|<=|>=|!=|[=<>()]|[^\s=<>!()"]+)')
_RELATIONS = ("=", "!=", "<", ">", "<=", ">=")


class Invalid(ValueError):
    """A text is no search."""


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """A parsed search. sort: field and whether it descends. page: from 1; 0: all.

    texts: whether a bare word was used.
    """

    matches: Predicate
    sort: tuple[str, bool] | None = None
    page: int = 0
    texts: bool = False
    fields: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class _Among:
    """A predicate: a field has one of these values. Clients search for many."""

    name: str
    values: frozenset[str]
    is_exact: bool

    def __call__(self, row: Mapping[str, Values]) -> bool:
        texts = map(_text_of, row[self.name])
        if self.is_exact:
            return any(text in self.values for text in texts)
        return any(text.lower() in self.values for text in texts)


def _merged(terms: Sequence[Predicate]) -> Iterator[Predicate]:
    """Yield predicates that mean the same, those of one field together."""
    values: dict[tuple[str, bool], set[str]] = {}
    for term in terms:
        if not isinstance(term, _Among):
            yield term
            continue
        values.setdefault((term.name, term.is_exact), set()).update(term.values)
    for (name, is_exact), some in values.items():
        yield _Among(name, frozenset(some), is_exact)


@dataclasses.dataclass(slots=True)
class _Parser:
    words: list[str]
    known: frozenset[str]
    is_exact: bool
    texts: bool = False
    used: set[str] = dataclasses.field(default_factory=set)

    def peek(self) -> str:
        return self.words[0] if self.words else ""

    def take(self) -> str:
        if not self.words:
            raise Invalid("it ends too early")
        return self.words.pop(0)

    def either(self) -> Predicate:
        terms = [self.both()]
        while self.peek().lower() == "or":
            self.take()
            terms.append(self.both())
        terms = list(_merged(terms))
        return lambda row: any(term(row) for term in terms)

    def both(self) -> Predicate:
        terms = [self.term()]
        while self.peek().lower() == "and":
            self.take()
            terms.append(self.term())
        if len(terms) == 1:
            return terms[0]
        return lambda row: all(term(row) for term in terms)

    def term(self) -> Predicate:
        word = self.take()
        if word == "(":
            inner = self.either()
            if self.take() != ")":
                raise Invalid("a parenthesis is not closed")
            return inner
        if self.peek() not in _RELATIONS:
            return self._text(word)
        return self._comparison(word.lower(), self.take(), self.take())

    def _text(self, word: str) -> Predicate:
        if word in _RELATIONS or word == ")":
            raise Invalid(f"unexpected {word}")
        self.texts = True
        pattern = _pattern(_unquoted(word), self.is_exact)
        return lambda row: any(
            isinstance(value, str) and pattern.fullmatch(value) is not None
            for values in row.values()
            for value in values
        )

    def _comparison(self, name: str, relation: str, word: str) -> Predicate:
        if name not in self.known:
            raise Invalid(f"unknown field {name}")
        if word in (*_RELATIONS, "(", ")"):
            raise Invalid(f"no value for {name}")
        self.used.add(name)
        value = _unquoted(word)
        if relation == "=" and "*" not in value:
            text = value if self.is_exact else value.lower()
            return _Among(name, frozenset((text,)), self.is_exact)
        if relation in ("=", "!="):
            pattern = _pattern(value, self.is_exact)
            is_equal = relation == "="
            return lambda row: is_equal == any(
                pattern.fullmatch(_text_of(item)) is not None for item in row[name]
            )
        number = _number(name, value)
        return lambda row: any(
            isinstance(item, float) and _holds(item, relation, number)
            for item in row[name]
        )


def parse(text: str, known: frozenset[str], is_exact: bool = False) -> Search:
    """Parse a search. known: fields of the type. is_exact: case matters.

    Raises:
        Invalid: with the reason.
    """
    if "'" in text or ";" in text:
        raise Invalid("' and ; are not allowed")
    words = _words(text)
    page = _page(words)
    sort = _sort(words, known)
    if not words:
        return Search(lambda row: True, sort, page)
    parser = _Parser(words, known, is_exact)
    predicate = parser.either()
    if parser.words:
        raise Invalid(f"unexpected {parser.words[0]}")
    used = frozenset(parser.used)
    return Search(predicate, sort, page, parser.texts, used)


def _words(text: str) -> list[str]:
    words, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            raise Invalid(f"unexpected {text[at:].strip()[:1]}")
        words.append(match[1])
        at = match.end()
    return words


def _page(words: list[str]) -> int:
    if len(words) < 2 or words[-2].lower() != "page":
        return 0
    number = words[-1]
    if not number.isdecimal() or int(number) < 1:
        raise Invalid(f"invalid page {number}")
    del words[-2:]
    return int(number)


def _sort(words: list[str], known: frozenset[str]) -> tuple[str, bool] | None:
    lowered = [word.lower() for word in words]
    if "sortby" not in lowered:
        return None
    at = lowered.index("sortby")
    clause = lowered[at + 1 :]
    del words[at:]
    if (
        not clause
        or clause[0] not in known
        or clause[1:] not in ([], ["asc"], ["desc"])
    ):
        raise Invalid("sortby needs a field, asc or desc")
    return clause[0], clause[1:] == ["desc"]


def _unquoted(word: str) -> str:
    return word[1:-1] if word.startswith('"') else word


def _pattern(value: str, is_exact: bool) -> re.Pattern[str]:
    parts = map(re.escape, value.split("*"))
    flags = re.DOTALL if is_exact else re.DOTALL | re.IGNORECASE
    return re.compile(".*".join(parts), flags)


def _text_of(value: Value) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return value or ""


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise Invalid(f"{name} is compared with a number") from error


def _holds(item: float, relation: str, number: float) -> bool:
    match relation:
        case "<":
            return item < number
        case ">":
            return item > number
        case "<=":
            return item <= number
        case _:
            return item >= number
