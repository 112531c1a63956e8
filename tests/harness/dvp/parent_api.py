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

    def refusal(
        self, target: ResourcePath, old: documents.Json, new: documents.Json
    ) -> tuple[int, str]:
        """See `FakeApi.refusal`; what was wrong before may stay.

        Source: Kubernetes apiextensions, ratcheting of validation.
        """
        versions = SCHEMAS.get((target.group, target.plural))
        if versions is None:
            return 0, ""
        schema = versions[target.version]
        before = schemas.problems(schema, old) if old else ()
        wrong = [row for row in schemas.problems(schema, new) if row not in before]
        if wrong:
            return 422, "; ".join(wrong)
        kind = _KINDS.get((target.group, target.plural))
        if kind is None or target.subresource is not None:
            return 0, ""
        review = admission.Review(kind, new, old or None, _Others(self))
        text = admission.refusal(rules.RULES, review)
        return (403, rules.denial(kind, text)) if text else (0, "")


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


def _item(document: Any) -> Item:
    return msgspec.convert(document, Item)
