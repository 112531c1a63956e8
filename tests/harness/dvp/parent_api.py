"""The API of a parent in memory: each request is judged as the platform judges it."""

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lib.kube.fake import api, documents, schemas
from lib.kube.resources import Resource, ResourcePath
from lib.lab.dvp import admission, kinds, parent_kinds, rules
from lib.lab.dvp.kinds import Item
from lib.process import clock

DEFINITIONS = (*parent_kinds.definitions(), parent_kinds.checked_service())
SCHEMAS = schemas.of(DEFINITIONS)
_KINDS = {(kind.group, kind.plural): kind for kind in rules.JUDGED}


class ImpossibleError(Exception):
    """A test arranges an object that the platform cannot have."""


class ParentApi(api.FakeApi):
    """Refuses fields that no definition names, and what webhooks refuse.

    serves_old_classes, serves_new_classes: the versions of VirtualMachineClass.
    """

    serves_old_classes = True
    serves_new_classes = True

    def __init__(self, now: Callable[[], datetime.datetime] = clock.utc_now) -> None:
        super().__init__(now)

    def serves(self, target: ResourcePath) -> bool:
        """See `FakeApi.serves`."""
        if target.plural == kinds.CLASSES.plural:
            is_old = target.version == kinds.CLASSES.version
            return self.serves_old_classes if is_old else self.serves_new_classes
        versions = SCHEMAS.get((target.group, target.plural))
        return versions is None or target.version in versions

    def put(self, resource: Resource, document: documents.Json) -> documents.Json:
        """See `FakeApi.put`; what was wrong before may stay.

        Raises:
            ImpossibleError: its definition does not admit the object.
        """
        versions = SCHEMAS.get((resource.group, resource.plural))
        schema = versions[resource.version] if versions else {}
        if versions and schemas.problems(schema, document):
            key = documents.key(document)
            held = (row for row in self.all(resource) if documents.key(row) == key)
            wrong = _new_problems(schema, next(held, {}), document)
            if wrong:
                raise ImpossibleError("; ".join(wrong))
        return super().put(resource, document)

    def put_impossible(
        self, resource: Resource, document: documents.Json
    ) -> documents.Json:
        """Create or replace an object that its definition does not admit."""
        return super().put(resource, document)

    def refusal(
        self, target: ResourcePath, old: documents.Json, new: documents.Json
    ) -> tuple[int, str]:
        """See `FakeApi.refusal`."""
        versions = SCHEMAS.get((target.group, target.plural))
        if versions is None:
            return 0, ""
        wrong = _new_problems(versions[target.version], old, new)
        if wrong:
            return 422, "; ".join(wrong)
        kind = _KINDS.get((target.group, target.plural))
        if kind is None or target.subresource is not None:
            return 0, ""
        review = admission.Review(kind, new, old or None, _Others(self))
        text = admission.refusal(rules.RULES, review)
        return (403, rules.denial(kind, text)) if text else (0, "")


def vm_spec(boot: str = "boot", **changes: Any) -> dict[str, Any]:
    """Return the spec of a VM with what its definition requires. boot: its disk."""
    return {
        "virtualMachineClassName": "generic",
        "cpu": {"cores": 1},
        "memory": {"size": "1Gi"},
        "blockDeviceRefs": [{"kind": "VirtualDisk", "name": boot}],
        **changes,
    }


class _Others:
    """Implements `admission.Lookup`."""

    def __init__(self, parent: api.FakeApi) -> None:
        self._parent = parent

    def get(self, kind: Resource, namespace: str, name: str) -> Item | None:
        within = self.within(kind, namespace if kind.namespaced else "")
        return next((item for item in within if item.name == name), None)

    def within(self, kind: Resource, namespace: str) -> Sequence[Item]:
        rows = (_item(document) for document in self._parent.all(kind))
        return [item for item in rows if item.namespace == namespace]


def _new_problems(
    schema: documents.Json, old: documents.Json, new: documents.Json
) -> Sequence[str]:
    """Return what is wrong and was not before. old: empty for a new object.

    Source: Kubernetes apiextensions, ratcheting of validation.
    """
    wrong = schemas.problems(schema, new)
    before = schemas.problems(schema, old) if wrong and old else ()
    return [row for row in wrong if row not in before]


def _item(document: Any) -> Item:
    return msgspec.convert(document, Item)
