"""Objects of a cluster as plain JSON, for those who play user, kubelet or node plugin.

What the product itself reads and writes is typed (lib/kube); here it is not known which
fields a test will want.
"""

import base64
import contextlib
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource

TIMEOUT_S = 30.0
Json = dict[str, Any]

CLAIM = resources.CLAIMS
VOLUME = resources.PERSISTENT_VOLUMES
POD = resources.PODS
NODE = resources.NODES
CSI_DRIVER = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False)
CSI_NODE = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False)
CLASS = resources.STORAGE_CLASSES
EVENT = resources.EVENTS
ATTACHMENT = resources.VOLUME_ATTACHMENTS


@dataclasses.dataclass(frozen=True, slots=True)
class Objects:
    """The API server's objects as JSON; those with a namespace are in `namespace`."""

    api: client.Api
    namespace: str

    def _space(self, kind: Resource) -> str | None:
        return self.namespace if kind.namespaced else None

    def make(
        self,
        kind: Resource,
        name: str,
        metadata: Mapping[str, object] | None = None,
        **parts: object,
    ) -> Json:
        """Create an object; return it as the API server stored it."""
        named = {"name": name, **(metadata or {})}
        body = {"apiVersion": kind.api_version, "kind": kind.kind}
        whole = json.dumps(body | {"metadata": named} | parts).encode()
        space = self._space(kind)
        return dict(
            json.loads(self.api.create(kind, whole, space, timeout_s=TIMEOUT_S))
        )

    def get(self, kind: Resource, name: str) -> Json | None:
        """Return an object; None when there is none."""
        space = self._space(kind)
        try:
            return dict(
                json.loads(self.api.read(kind, name, space, timeout_s=TIMEOUT_S))
            )
        except kube_errors.NotFound:
            return None

    def all(self, kind: Resource) -> list[Json]:
        """Return all of a kind."""
        space = self._space(kind)
        page = self.api.list_page(kind, space, query={}, timeout_s=TIMEOUT_S)
        return list(json.loads(page)["items"])

    def write_secret(self, name: str, texts: Mapping[str, str]) -> None:
        """Create a Secret, or replace these texts in an existing one."""
        data = {
            key: base64.b64encode(text.encode()).decode() for key, text in texts.items()
        }
        if self.get(resources.SECRETS, name) is None:
            self.make(resources.SECRETS, name, data=data)
        else:
            self.patch(resources.SECRETS, name, data=data)

    def patch(self, kind: Resource, name: str, **parts: object) -> None:
        """Change parts of an object, by a merge patch."""
        space = self._space(kind)
        self.api.patch(
            kind, name, json.dumps(parts).encode(), space, timeout_s=TIMEOUT_S
        )

    def delete(self, kind: Resource, name: str, grace_s: int | None = 0) -> None:
        """Delete an object; fine when there is none.

        grace_s: seconds; 0: immediately, None: the object's own.
        """
        space = self._space(kind)
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        body = json.dumps(options).encode()
        with contextlib.suppress(kube_errors.NotFound):
            self.api.delete(kind, name, space, body=body, timeout_s=TIMEOUT_S)
