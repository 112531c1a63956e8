"""Requests and answers as the services write them, and how faults are put between."""

import dataclasses
import functools
import urllib.parse
from collections.abc import Mapping

import msgspec

Json = dict[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One request. parts: of the path below the version. query: each key's values."""

    service: str
    method: str
    parts: tuple[str, ...]
    query: Mapping[str, list[str]]
    body: Json
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """The path below the version."""
        return "/".join(self.parts)

    def one(self, key: str, default: str = "") -> str:
        """Return the first value of a query's key."""
        return self.query.get(key, [default])[0]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """One response; body None: empty."""

    status: int
    body: Json | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The body as bytes."""
        return b"" if self.body is None else msgspec.json.encode(self.body)


class Refused(Exception):
    """A service rejects a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def call_of(
    service: str, method: str, url: str, body: Json, headers: Mapping[str, str]
) -> Call:
    """Take a URL like fake://service/a/b?c=d apart."""
    parts, query = _apart(url)
    return Call(service, method, parts, query, body, headers)


@functools.lru_cache(maxsize=1000)
def _apart(url: str) -> tuple[tuple[str, ...], Mapping[str, list[str]]]:
    """Return the parts of the path, and the query, which must not be changed."""
    split = urllib.parse.urlsplit(url)
    parts = tuple(
        urllib.parse.unquote(part) for part in split.path.strip("/").split("/")
    )
    return parts, urllib.parse.parse_qs(split.query, keep_blank_values=True)


def part(body: Json, key: str) -> Json:
    """Return an object inside a body."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise Refused(400, f"Missing required attribute {key}")
    return value


def objects(body: Json, key: str) -> list[Json]:
    """Return a list of objects inside a body; none when it is not there."""
    value = body.get(key) or []
    if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
        raise Refused(400, f"Invalid input for field/attribute {key}")
    return value


def texts(value: object) -> list[str]:
    """Return a list of texts."""
    return [str(text) for text in value] if isinstance(value, list | tuple) else []


def shown(items: list[Json], call: Call, kind: str) -> Answer:
    """Answer a list: fields, limit and marker as asked for."""
    fields = call.query.get("fields", [])
    limit = int(call.one("limit", "1000000"))
    marker = call.one("marker")
    ids = [str(item["id"]) for item in items]
    start = ids.index(marker) + 1 if marker in ids else 0
    page = items[start : start + limit]
    cut = [
        {key: value for key, value in item.items() if not fields or key in fields}
        for item in page
    ]
    body: Json = {kind: cut}
    if page and start + limit < len(items):
        query = urllib.parse.urlencode({"marker": page[-1]["id"]})
        body[f"{kind}_links"] = [{"rel": "next", "href": f"fake://x/?{query}"}]
    return Answer(200, body)
