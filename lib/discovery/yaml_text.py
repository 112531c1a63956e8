"""Reads and writes YAML the way Kubernetes' tools do. Pure."""

import json
from collections.abc import Mapping

import yaml

from lib.process import config

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_MERGE = "tag:yaml.org,2002:merge"


def read(label: str, text: str) -> tuple[object, ...]:
    """Return the documents of a text, without empty ones.

    Keys become texts and times stay texts, as in a conversion by JSON. label: name of
    the text for the user.

    Raises:
        ConfigError: it can't be parsed. Its content is not shown: it may be secret.
    """
    try:
        documents = _documents(text)
        # A lone surrogate, which only an escape can produce, can't be encoded again.
        json.dumps(documents, ensure_ascii=False, default=str).encode()
        return tuple(document for document in documents if document is not None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise _unreadable(label, where) from None
    except (yaml.YAMLError, ValueError, KeyError, RecursionError):
        # For values that contradict their tag the parser raises Python's own errors.
        raise _unreadable(label, "") from None


def dump(*documents: Mapping[str, object]) -> str:
    """Write YAML documents, without anchors."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31
    )


def _documents(text: str) -> tuple[object, ...]:
    """Read JSON, which YAML's reader accepts without tabs only, or YAML."""
    try:
        return (json.loads(text, object_pairs_hook=_once),)
    except json.JSONDecodeError:
        return tuple(yaml.load_all(text, Loader=_Loader))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key stands there twice")
    return mapping


def _unreadable(label: str, where: str) -> config.ConfigError:
    problem = config.FieldProblem(label, None, f"YAML that can be read{where}")
    return config.ConfigError([problem])


class _Loader(yaml.SafeLoader):
    """Loader that reads keys as texts, rejects duplicates, and reads no times."""

    # Those of the base class without timestamps.
    yaml_implicit_resolvers = {  # noqa: RUF012 # as the class above has it
        first: [(tag, pattern) for tag, pattern in known if tag != _TIMESTAMP]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[object, object]:
        own = [self._key(key) for key, _ in node.value if key.tag != _MERGE]
        if len(set(own)) < len(own):
            mark = node.start_mark
            raise yaml.constructor.ConstructorError(problem_mark=mark)
        self.flatten_mapping(node)
        return {
            self._key(key): self.construct_object(value, deep=deep)
            for key, value in node.value
        }

    def _key(self, node: yaml.Node) -> str:
        key = self.construct_object(node, deep=True)
        return str(key).lower() if isinstance(key, bool) else str(key)


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


# Also for texts with an explicit timestamp tag.
_Loader.add_constructor(_TIMESTAMP, _text)


class _Dumper(yaml.SafeDumper):
    """Dumper without anchors: repeated objects are written repeatedly."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True
