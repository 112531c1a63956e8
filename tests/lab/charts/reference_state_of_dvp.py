"""The state of the reference for DVP on a real API server, created and deleted."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from lib.kube import client
from lib.lab.dvp import workload_objects
from lib.lab.kube import control_plane
from tests.lab.charts import installing, reference_machines_of_dvp, reference_of_dvp

_OTHERS = (*reference_machines_of_dvp.OTHERS, reference_machines_of_dvp.MODULE_CONFIGS)
_PHASES = {"pvc-1": "Available", "pvc-2": "Bound"}
"""Of PersistentVolumes, once their controller has seen them."""
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class ReferenceState:
    """Objects of both generations of the module. documents: their manifests."""

    ground: installing.Ground
    documents: Sequence[Json]
    kinds: installing.Kinds

    def delete(self) -> None:
        """Delete the objects, then the definitions that are not the chart's."""
        for item in reversed(self.documents):
            path = installing.path_of(item, self.kinds)
            if item["metadata"].get("finalizers"):
                body = json.dumps({"metadata": {"finalizers": None}}).encode()
                _patch(self.ground, path, body)
            self.ground.delete(path)
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for kind in _OTHERS:
            self.ground.delete(f"{crds}/{kind.plural}.{kind.group}")
        gone = {kind.kind for kind in _OTHERS}
        installing.until(lambda: gone.isdisjoint(k for _, k in self.ground.kinds()))


def create(ground: installing.Ground) -> ReferenceState:
    """Create the state, and wait until the cluster's own controllers are done.

    The chart's definitions exist.
    """
    text = "---".join(
        (
            reference_of_dvp.STATE,
            reference_machines_of_dvp.STATE,
            reference_of_dvp.workloads(),
        )
    )
    control_plane.apply_manifests(ground.where, yaml.safe_dump_all(_others()))
    documents = list(yaml.safe_load_all(text))
    needed = {(item["apiVersion"], item["kind"]) for item in documents}
    installing.until(lambda: needed <= ground.kinds().keys())
    control_plane.apply_manifests(ground.where, text)
    kinds = installing.until(ground.kinds)
    for (kind, name), status in reference_machines_of_dvp.STATUSES.items():
        (item,) = (
            item
            for item in documents
            if (item["kind"], item["metadata"]["name"]) == (kind.kind, name)
        )
        path = f"{installing.path_of(item, kinds)}/status"
        _patch(ground, path, json.dumps({"status": status}).encode())
    volumes = [item for item in documents if item["kind"] == "PersistentVolume"]

    def phases() -> dict[str, str]:
        read = [ground.live(item, kinds) for item in volumes]
        return {item["metadata"]["name"]: item["status"]["phase"] for item in read}

    installing.until(lambda: phases() == _PHASES)
    return ReferenceState(ground, documents, kinds)


def _others() -> Iterator[Json]:
    for kind in _OTHERS:
        document = workload_objects.open_definition(kind)
        scope = "Namespaced" if kind.namespaced else "Cluster"
        yield {**document, "spec": {**document["spec"], "scope": scope}}
    space = {"name": reference_machines_of_dvp.SPACE}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": space}


def _patch(ground: installing.Ground, path: str, body: bytes) -> None:
    ground.api.request(
        "PATCH",
        path,
        body=body,
        content_type=client.MERGE_PATCH,
        timeout_s=installing.TIMEOUT_S,
    )
