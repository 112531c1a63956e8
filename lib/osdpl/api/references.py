"""References of the spec to Secrets: value_from.secret_key_ref.

References inside lists count as well; the reference implementation ignores them. Only
Secrets with the label that the reference requires are read: a user with the permission
to edit an OpenStackDeployment could read any other Secret of the namespace through it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lib.osdpl.api import model
from lib.process import config

LABEL, LABEL_VALUE = "openstack.lcm.mirantis.com/osdpl_secret", "true"
"""Label of the Secrets that a spec may refer to. Source: the reference."""

Secrets = Mapping[str, Mapping[str, bytes] | None]
"""Data of Secrets by name; None: the Secret does not exist, or lacks the label."""


def find(spec: model.Tree) -> tuple[model.Reference, ...]:
    """Return the references of a spec, sorted by path."""
    return tuple(sorted(_walk(spec, "spec")))


def substitute(spec: model.Tree, secrets: Secrets) -> model.Tree:
    """Return the spec with the values of the Secrets in place of the references.

    Raises:
        ConfigError: Secrets or keys do not exist, or values are not text.
    """
    problems: list[config.FieldProblem] = []
    replaced = _replace(spec, "spec", secrets, problems)
    config.require(problems)
    return dict(replaced)


def is_reference(node: object) -> bool:
    """Report whether a value of a spec is a reference."""
    return _reference(node, "") is not None


def members(node: object, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path, the key and the value of each member."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{path}.{key}", key, value
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield f"{path}[{index}]", index, value


def _reference(node: Any, path: str) -> model.Reference | None:
    """Return the reference that an object is, if it is one."""
    if not isinstance(node, dict) or set(node) != {"value_from"}:
        return None
    source = node["value_from"]
    if not isinstance(source, dict) or set(source) != {"secret_key_ref"}:
        return None
    target = source["secret_key_ref"]
    if not isinstance(target, dict):
        return None
    name, key = target.get("name"), target.get("key")
    if not isinstance(name, str) or not isinstance(key, str):
        return None
    return model.Reference(path=path, secret=name, key=key)


def _walk(node: Any, path: str) -> Iterator[model.Reference]:
    reference = _reference(node, path)
    if reference is not None:
        yield reference
        return
    for below, _, value in members(node, path):
        yield from _walk(value, below)


def _replace(
    node: Any, path: str, secrets: Secrets, problems: list[config.FieldProblem]
) -> Any:
    reference = _reference(node, path)
    if reference is not None:
        return _value(reference, secrets, problems)
    replaced = {
        key: _replace(value, below, secrets, problems)
        for below, key, value in members(node, path)
    }
    if isinstance(node, dict):
        return replaced
    return list(replaced.values()) if isinstance(node, list) else node


def _value(
    reference: model.Reference, secrets: Secrets, problems: list[config.FieldProblem]
) -> str:
    """Return the value of a reference, or add a problem that shows no value."""
    data = secrets.get(reference.secret)
    field = f"{reference.path}.value_from.secret_key_ref"
    if data is None:
        expected = f"an existing Secret with the label {LABEL}={LABEL_VALUE}"
        problem = _problem(f"{field}.name", reference.secret, expected)
    elif reference.key not in data:
        keys = ", ".join(sorted(data)) or "none"
        expected = f"a key of Secret {reference.secret} (its keys: {keys})"
        problem = _problem(f"{field}.key", reference.key, expected)
    else:
        try:
            return data[reference.key].decode()
        except UnicodeDecodeError:
            problem = _problem(f"{field}.key", reference.key, "a key with UTF-8 text")
    problems.append(problem)
    return ""


def _problem(field: str, value: str, expected: str) -> config.FieldProblem:
    # The word "secret" of the field would hide the name; it is not a secret.
    return config.FieldProblem(f"{field} = {value}", None, expected)
