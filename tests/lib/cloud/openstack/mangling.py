"""Answers as broken services and proxies write them."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


def mangled(content: bytes, chance: random.Random) -> bytes:
    """Return a malformed answer: cut, of another kind, or with parts of other kinds."""
    match chance.randrange(4):
        case 0:
            return content[: chance.randrange(len(content) + 1)]
        case 1:
            others = (b"", b"null", b"[]", b"{}", b"<html>", b'{"title": "Not Found"}')
            return chance.choice(others)
        case 2:
            at = chance.randrange(len(content) + 1)
            return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
    return json.dumps(broken(json.loads(content or b"{}"), chance)).encode()


def broken(value: object, chance: random.Random) -> object:
    if chance.random() < 0.1:
        return chance.choice((None, 1, "", [], {}, "x", -1, [None], True))
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if chance.random() > 0.05}
        return {key: broken(row, chance) for key, row in kept.items()}
    if isinstance(value, list):
        return [broken(row, chance) for row in value]
    return value


class Mangled:
    """Puts itself between a stand-in and its clients; answered: so many, malformed."""

    def __init__(self, stand_in: Any, service: str) -> None:
        self._answer: Callable[[Any], Answer] = stand_in.answer
        self._service = service
        self._chance = random.Random(14)  # noqa: S311 # inputs that repeat
        self.answered = 0
        stand_in.answer = self.answer

    def answer(self, call: Any) -> Answer:
        status, headers, body = self._answer(call)
        if not call.path.startswith(f"/{self._service}/"):
            return status, headers, body
        if self._chance.random() < 0.3:
            return status, headers, body
        self.answered += 1
        status = self._chance.choice((status, status, status, 404, 500))
        return status, headers, mangled(body, self._chance)

    def until(self, count: int, clock: Any) -> Iterator[int]:
        """Go on until so many malformed answers were given; no circuit stays open."""
        tries = 0
        while self.answered < count:
            clock.now += 400.0
            yield tries
            tries += 1
            assert tries < 10 * count, "the service is not asked any more"
