"""The core of Cluster API without its process: what it writes for many Machines.

Benches count what capdvp does, not what the core does beside it. Written are the
objects, owner references and statuses that capdvp reads: those of a Cluster with its
infrastructure, and of Machines whose bootstrap data is ready.
"""

import concurrent.futures
import json
from collections.abc import Sequence

from lib.kube import client, resources
from lib.lab import places
from lib.lab.dvp import capdvp_objects
from lib.lab.kube import kube_objects
from tests.harness.machines import cluster_objects
from tests.harness.machines.cluster_objects import (
    CLUSTERS,
    DVP_CLUSTERS,
    DVP_MACHINES,
    MACHINES,
    NAME_LABEL,
    Json,
)

CLUSTER = "one"
THREADS = 8


class CoreObjects:
    """Writes and reads the objects. where: of the child."""

    def __init__(self, where: places.Places, api: client.Api) -> None:
        self.where = where
        self.objects = kube_objects.Objects(api, cluster_objects.NAMESPACE)
        self._api = api

    def install(self) -> None:
        """Install the definitions, and create the Cluster with its Secret."""
        capdvp_objects.install(self._api, (CLUSTERS, MACHINES))
        for kind in (CLUSTERS, MACHINES, DVP_CLUSTERS, DVP_MACHINES):
            cluster_objects.until_served(self.objects, kind)
        self._create_cluster()

    def _create_cluster(self) -> None:
        self.objects.make(
            resources.SECRETS,
            cluster_objects.BOOTSTRAP,
            {"labels": {NAME_LABEL: CLUSTER}},
            type="cluster.x-k8s.io/secret",
            data=cluster_objects.bootstrap_data(),
        )
        owner = self.objects.make(CLUSTERS, CLUSTER, spec={})
        self.objects.make(DVP_CLUSTERS, CLUSTER, _owned_by(owner), spec={})
        status = {"initialization": {"infrastructureProvisioned": True}}
        self.report(CLUSTERS, CLUSTER, status)

    def report(self, kind: resources.Resource, name: str, status: Json) -> None:
        """Change the status of an object."""
        self._api.patch(
            kind,
            name,
            json.dumps({"status": status}).encode(),
            self.objects.namespace,
            subresource="status",
            timeout_s=kube_objects.TIMEOUT_S,
        )

    def create(self, name: str, **spec: object) -> Json:
        """Create a Machine; return its DeckhouseMachine. spec: more fields of that."""
        reference = cluster_objects.reference(DVP_MACHINES, name)
        owner = self.objects.make(
            MACHINES,
            name,
            spec={
                "clusterName": CLUSTER,
                "bootstrap": {"dataSecretName": cluster_objects.BOOTSTRAP},
                "infrastructureRef": reference,
            },
        )
        return self.objects.make(
            DVP_MACHINES,
            name,
            _owned_by(owner),
            spec=cluster_objects.machine_spec(**spec),
        )

    def create_all(self, names: Sequence[str], **spec: object) -> list[Json]:
        """Create many Machines in parallel; return their DeckhouseMachines."""
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(lambda name: self.create(name, **spec), names))

    def provisioned(self) -> set[str]:
        """Return the names of the machines that are provisioned."""
        return {
            item["metadata"]["name"]
            for item in self.objects.all(DVP_MACHINES)
            if item.get("status", {}).get("initialization", {}).get("provisioned")
        }

    def delete(self, name: str) -> None:
        """Request the deletion of the DeckhouseMachine of a Machine."""
        self.objects.delete(DVP_MACHINES, name, None)

    def is_gone(self, name: str) -> bool:
        """Report whether a DeckhouseMachine does not exist any more."""
        return self.objects.get(DVP_MACHINES, name) is None


def _owned_by(owner: Json) -> Json:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {"labels": {NAME_LABEL: CLUSTER}, "ownerReferences": [reference]}
