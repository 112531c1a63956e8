"""A rule, and how rules read a spec."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lib.process.config import FieldProblem, not_set, quoted, stated

Tree = Mapping[str, Any]

VERSIONS = (
    *("queens", "rocky", "stein", "train", "ussuri", "victoria", "wallaby", "xena"),
    *("yoga", "zed", "antelope", "bobcat", "caracal", "dalmatian", "epoxy"),
    *("flamingo", "gazpacho", "master"),
)
"""OpenStack versions in their order, also those that no spec may name."""
SLURP = ("yoga", "antelope", "caracal", "epoxy", "gazpacho")
"""Versions that can be upgraded to from the one before them in this list."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of an OpenStackDeployment that is to be admitted.

    spec: the effective one. written: as the user wrote it. version: the applied
    version; empty: none yet. before: the effective spec before the change, if known.
    state: of the OpenStackDeploymentStatus; empty: none. status, status_before: of the
    OpenStackDeployment. others: keys of older OpenStackDeployments. recorded: hash by
    field of the spec that was applied last; empty: unknown. is_upgrading: an upgrade to
    this version has not ended. forced: values of the force annotation.
    is_by_definition: the deletion is that of the CustomResourceDefinition. services:
    that were desired when the spec was applied last.
    """

    spec: Tree = dataclasses.field(repr=False)
    written: Tree = dataclasses.field(default_factory=dict, repr=False)
    version: str = ""
    before: Tree | None = dataclasses.field(default=None, repr=False)
    state: str = ""
    status: Tree = dataclasses.field(default_factory=dict)
    status_before: Tree = dataclasses.field(default_factory=dict)
    is_deletion: bool = False
    others: tuple[str, ...] = ()
    recorded: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_upgrading: bool = False
    is_by_definition: bool = False
    services: frozenset[str] = frozenset()
    forced: frozenset[str] = frozenset()

    @property
    def is_upgrade(self) -> bool:
        """Report whether the OpenStack version changes."""
        return bool(self.version) and self.version != self.spec["openstack_version"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """name: of the rule, stable. service: that must be desired; empty: applies always.

    find: yields what violates it.
    """

    name: str
    service: str
    find: Callable[[Change], Iterable[FieldProblem]]


def at(tree: object, path: str) -> Any:
    """Return the value at a path, None if there is none."""
    for key in path.split("."):
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree


def below(tree: object, path: str) -> Tree:
    """Return the object at a path, empty if there is none."""
    subtree = at(tree, path)
    return subtree if isinstance(subtree, Mapping) else {}


def is_before(change: Change, version: str) -> bool:
    """Report whether the OpenStack version of a spec is older than another."""
    own = str(change.spec["openstack_version"])
    return VERSIONS.index(own) < VERSIONS.index(version)


def problem(path: str, value: object, expected: str) -> FieldProblem:
    """Return the problem of a value of the spec. expected: read after "must be"."""
    shown = str(value).lower() if isinstance(value, bool) else value
    return FieldProblem(f"spec.{path}", None if shown is None else str(shown), expected)


def required(path: str, expected: str = "") -> FieldProblem:
    """Return the problem of a required field of the spec that is not set."""
    return not_set(f"spec.{path}", expected)


def rejected(path: str, text: str) -> FieldProblem:
    """Return a problem of the spec that is no invalid value. text: after the path."""
    return stated(f"spec.{path}", text)


def enabled_since(path: str, version: str, service: str = "") -> Rule:
    """Return the rule that a feature can be enabled from a version on."""

    def find(change: Change) -> Iterator[FieldProblem]:
        if at(change.spec, path) is True and is_before(change, version):
            expected = f"false before OpenStack {version}"
            yield problem(path, True, expected)

    return Rule(f"{path} since {version}", service, find)


def service_since(service: str, version: str) -> Rule:
    """Return the rule that a service exists from a version on."""

    def find(change: Change) -> Iterator[FieldProblem]:
        if is_before(change, version):
            yield rejected(
                "features.services",
                f"{quoted(service)}: not supported before OpenStack {version}",
            )

    return Rule(f"{service} since {version}", service, find)


def service_until(service: str, version: str) -> Rule:
    """Return the rule that a service exists up to the version before this one."""

    def find(change: Change) -> Iterator[FieldProblem]:
        if not is_before(change, version):
            yield rejected(
                "features.services",
                f"{quoted(service)}: not supported since OpenStack {version}",
            )

    return Rule(f"{service} before {version}", service, find)


def required_fields(
    name: str, service: str, items: Callable[[Tree], Iterator[tuple[str, Tree]]]
) -> Callable[[str, str], Rule]:
    """Return a factory of the rules that items of a spec have a field.

    items: yields path and content of each item. A field is a path within the item.
    """

    def make(field: str, expected: str) -> Rule:
        def find(change: Change) -> Iterator[FieldProblem]:
            for path, item in items(change.spec):
                if at(item, field) in (None, ""):
                    yield required(f"{path}.{field}", expected)

        return Rule(f"{name}: {field}", service, find)

    return make
