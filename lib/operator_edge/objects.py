"""The last known state of each object that Kopf has delivered.

An event that Kopf misses, a deletion while it lists again, leaves an object here: who
acts on one reads it again before the first write that needs it to exist.
"""

import threading
from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]


class Objects:
    """Objects by "namespace/name". Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[str, Document] = {}

    def put(self, document: Document) -> str:
        """Keep an object, unless a newer state of it is kept; return its key."""
        key = key_of(document)
        with self._lock:
            held = self._objects.get(key)
            if held is None or not _is_newer(held, document):
                self._objects[key] = document
        return key

    def remove(self, document: Document) -> str:
        """Forget an object that was deleted; return its key."""
        key = key_of(document)
        with self._lock:
            held = self._objects.get(key)
            if held is not None and _uid(held) == _uid(document):
                del self._objects[key]
        return key

    def get(self, key: str) -> Document | None:
        """Return an object, or None."""
        with self._lock:
            return self._objects.get(key)

    def by_age(self) -> tuple[str, ...]:
        """Return all keys, the oldest object first."""
        with self._lock:
            aged = sorted(self._objects.items(), key=lambda item: _age(item[1]))
        return tuple(key for key, _ in aged)


def key_of(document: Document) -> str:
    """Return "namespace/name"."""
    metadata = document["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"


def _uid(document: Document) -> str:
    return str(document["metadata"].get("uid") or "")


def _age(document: Document) -> tuple[str, str]:
    return str(document["metadata"].get("creationTimestamp") or ""), _uid(document)


def _is_newer(held: Document, document: Document) -> bool:
    """Report whether the held state is newer; another object always replaces it.

    Source: as in lib/kube/store.py, resource versions are numbers that grow.
    """
    if _uid(held) != _uid(document):
        return False
    versions = [
        str(document_["metadata"].get("resourceVersion") or "")
        for document_ in (held, document)
    ]
    return all(version.isdecimal() for version in versions) and int(versions[0]) > int(
        versions[1]
    )
