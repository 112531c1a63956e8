"""Kubernetes objects of a module of Deckhouse, as documents. Pure."""

import base64
import dataclasses
import hashlib
from collections.abc import Mapping

MACHINES_NAMESPACE = "d8-cloud-instance-manager"
SYSTEM_NAMESPACE = "kube-system"

Manifest = dict[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class Module:
    """The module of one cloud. name: such as cloud-provider-x."""

    name: str

    @property
    def namespace(self) -> str:
        """The namespace of the module's workloads."""
        return f"d8-{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of every object. Source: Deckhouse, helm_lib_module_labels."""
        return {"heritage": "deckhouse", "module": self.name}

    def secret(
        self,
        namespace: str,
        name: str,
        texts: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        kind: str = "Opaque",
    ) -> Manifest:
        """Return a Secret; `texts` is its data, not yet encoded. kind: its type."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**self.labels, **(labels or {})},
            },
            "type": kind,
            "data": {
                key: base64.b64encode(text.encode()).decode()
                for key, text in texts.items()
            },
        }

    def for_machines(
        self,
        kind: tuple[str, str],
        name: str,
        spec: Mapping[str, object],
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Manifest:
        """Return an object beside the machines. kind: apiVersion and kind."""
        metadata: dict[str, object] = {
            "name": name,
            "namespace": MACHINES_NAMESPACE,
            "labels": {**self.labels, **(labels or {})},
        }
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {
            "apiVersion": kind[0],
            "kind": kind[1],
            "metadata": metadata,
            "spec": dict(spec),
        }


def zone_hash(cluster_uuid: str, zone: str) -> str:
    """Return the eight hex digits in the names of the machines of one zone.

    Source: Deckhouse, node-manager: sha256 of both with nothing between.
    """
    return hashlib.sha256(f"{cluster_uuid}{zone}".encode()).hexdigest()[:8]
