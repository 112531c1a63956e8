"""The reader of every YAML file that a user hands to a program. Pure.

Kinds of files: `read` types scalars as kubectl does; `texts` keeps the characters of
each scalar, for files of other tools in which every field is a text. A file that cannot
be read is one message without any part of its content, which may be secret.
"""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import yaml

from lib.process import config

_TAG = "tag:yaml.org,2002:"
_TIMESTAMP, _MERGE = f"{_TAG}timestamp", f"{_TAG}merge"
_INT, _FLOAT, _NULL = f"{_TAG}int", f"{_TAG}float", f"{_TAG}null"
VALUES_MAX = 1_000_000
"""Values of a file, with those of each alias."""
T = TypeVar("T")


def read(label: str, text: str) -> tuple[object, ...]:
    """Return the documents of a text, without empty ones.

    Keys become texts and times stay texts, as in a conversion by JSON; 11:22:33 is a
    text and not a number of base 60. label: name of the text for the user.

    Raises:
        ConfigError: it can't be parsed. Its content is not shown: it may be secret.
    """
    return _guarded(label, lambda: _documents(text))


def texts(label: str, text: str) -> tuple[object, ...]:
    """Return the documents of a text, each scalar as it is written; null is None.

    label: name of the text for the user.

    Raises:
        ConfigError: as `read`.
    """
    return _guarded(label, lambda: yaml.load_all(text, Loader=_Texts))


def _guarded(label: str, load: Callable[[], Iterable[object]]) -> tuple[object, ...]:
    try:
        documents = tuple(load())
        _require_plain(documents)
        # A lone surrogate, which only an escape can produce, can't be encoded again.
        json.dumps(documents, ensure_ascii=False, default=str).encode()
        return tuple(document for document in documents if document is not None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise _unreadable(label, where) from None
    except _DuplicateKey as error:
        raise _unreadable(label, f" (key {error} is set twice)") from None
    except _NotPlain as error:
        raise _unreadable(label, f" ({error})") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        # For values that contradict their tag the parser raises Python's own errors.
        raise _unreadable(label, "") from None


class _DuplicateKey(ValueError):
    """A key is in one mapping twice; the text is the key with its line."""


class _NotPlain(ValueError):
    """A document is no JSON, or too large; the text is the reason."""


def _require_plain(documents: Iterable[object]) -> None:
    """Return if the documents are as JSON could have them.

    Aliases of aliases grow exponentially where they are written out, so each value is
    visited once.

    Raises:
        _NotPlain: they are not.
    """
    sizes: dict[int, int] = {}
    if sum(_size(document, sizes) for document in documents) > VALUES_MAX:
        raise _NotPlain(f"its aliases stand for more than {VALUES_MAX} values")


def _size(node: object, sizes: dict[int, int]) -> int:
    """Return the number of values of a tree, aliases written out."""
    if isinstance(node, float) and not math.isfinite(node):
        raise _NotPlain("a number that is not finite")
    if node is None or isinstance(node, str | int | float):
        return 1
    if not isinstance(node, dict | list):
        raise _NotPlain(f"a value that JSON lacks: {type(node).__name__}")
    known = sizes.get(id(node))
    if known is None:
        sizes[id(node)] = VALUES_MAX  # what contains itself is too large
        below = node.values() if isinstance(node, dict) else node
        known = 1 + sum(_size(value, sizes) for value in below)
        sizes[id(node)] = known
    return known


def _documents(text: str) -> Iterable[object]:
    """Read JSON, which YAML's reader accepts without tabs only, or YAML."""
    try:
        return (json.loads(text, object_pairs_hook=_once),)
    except json.JSONDecodeError:
        return tuple(yaml.load_all(text, Loader=_Kubectl))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _DuplicateKey(config.quoted(next(k for k in keys if keys.count(k) > 1)))
    return mapping


def _unreadable(label: str, where: str) -> config.ConfigError:
    problem = config.FieldProblem(label, None, f"YAML that can be read{where}")
    return config.ConfigError([problem])


_NUMBERS = {
    _INT: re.compile(r"[-+]?(0b[0-1_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\Z"),
    _FLOAT: re.compile(
        r"([-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*)([eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"
    ),
}
"""Without numbers of base 60, which YAML 1.1 has and Go's parser lacks.

Source: gopkg.in/yaml.v2 resolve.go, by which sigs.k8s.io/yaml reads."""


class _Kubectl(yaml.SafeLoader):
    """Loader that reads keys as texts, rejects duplicates, and reads no times."""

    # Those of the base class without timestamps, and with other numbers.
    yaml_implicit_resolvers = {  # noqa: RUF012 # as the class above has it
        first: [
            (tag, _NUMBERS.get(tag, pattern))
            for tag, pattern in known
            if tag != _TIMESTAMP
        ]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[object, object]:
        own = [self._key(key) for key, _ in node.value if key.tag != _MERGE]
        if len(set(own)) < len(own):
            key = next(key for key in own if own.count(key) > 1)
            line = node.start_mark.line + 1
            raise _DuplicateKey(f"{config.quoted(key)} of the map in line {line}")
        self.flatten_mapping(node)
        return {
            self._key(key): self.construct_object(value, deep=deep)
            for key, value in node.value
        }

    def _key(self, node: yaml.Node) -> str:
        key = self.construct_object(node, deep=True)
        return str(key).lower() if isinstance(key, bool) else str(key)


class _Texts(yaml.SafeLoader):
    """Loader that types nothing but null; of repeated keys the last counts."""

    yaml_implicit_resolvers = {  # noqa: RUF012 # as the class above has it
        first: [(tag, pattern) for tag, pattern in known if tag in (_NULL, _MERGE)]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


# Also for texts with an explicit tag.
_Kubectl.add_constructor(_TIMESTAMP, _text)
for _name in ("bool", "int", "float", "timestamp", "binary"):
    _Texts.add_constructor(f"{_TAG}{_name}", _text)
