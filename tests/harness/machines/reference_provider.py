"""The reference's capdvp in a child: what it writes, reads and deletes there.

Source: Deckhouse modules/030-cloud-provider-dvp, images/capdvp-controller-manager.
"""

import functools
from typing import Any

from lib.cloud.dvp.machines import machine_names
from lib.kube import resources
from lib.lab.dvp.kinds import DISKS, MACHINES
from lib.lab.run import waiting
from tests.harness.machines import cluster_objects
from tests.harness.machines.cluster_objects import DVP_CLUSTERS, DVP_MACHINES
from tests.harness.machines.fleet import Fleet
from tests.harness.machines.reference_machines import (
    ReferenceMachines,
    Size,
    labels,
)

FINALIZER = "deckhousemachine.infrastructure.cluster.x-k8s.io"
CONDITION = "VirtualMachineReady"
ADDRESSES = ("Hostname", "InternalDNS", "InternalIP", "ExternalIP")
_PROVISIONED = {"initialization": {"provisioned": True}, "ready": True}
Json = dict[str, Any]


class ReferenceProvider:
    """The reference on the machines of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        size = Size(1, "10%", "256Mi")
        self.machines = ReferenceMachines(fleet.parent, fleet.project, size)

    def provision_cluster(self) -> None:
        """Write endpoint and status of the DeckhouseCluster."""
        name = self._fleet.name
        host = {"host": "127.0.0.1", "port": self._fleet.where.port("apiserver")}
        self._fleet.objects.patch(
            DVP_CLUSTERS, name, spec={"controlPlaneEndpoint": host}
        )
        self._fleet.report(DVP_CLUSTERS, name, _PROVISIONED)

    def begin(self, name: str) -> None:
        """Add the finalizer: the first thing that is done for a machine."""
        self._fleet.objects.patch(
            DVP_MACHINES, name, metadata={"finalizers": [FINALIZER]}
        )

    def provision(self, name: str) -> None:
        """Write what is known once the VM runs."""
        vm = self._fleet.parent.wait_phase(
            MACHINES, self._fleet.project, name, "Running"
        )
        provider_id = machine_names.provider_id(name)
        self._fleet.objects.patch(DVP_MACHINES, name, spec={"providerID": provider_id})
        address = vm["status"]["ipAddress"]
        values = (name, name, address, address)
        rows = [
            {"type": type_, "address": value}
            for type_, value in zip(ADDRESSES, values, strict=True)
        ]
        ready = {
            "type": CONDITION,
            "status": "True",
            "reason": "VMRunning",
            "message": "",
            "lastTransitionTime": "2026-11-24T00:00:00Z",
        }
        status = {**_PROVISIONED, "addresses": rows, "conditions": [ready]}
        self._fleet.report(DVP_MACHINES, name, status)

    def age(self, name: str) -> None:
        """Replace the status by that of the old generation."""
        old = {
            "provisioned": None,
            "infrastructureProvisioned": True,
            "bootstrapDataSecretCreated": True,
        }
        conditions = [{"type": CONDITION, "status": "True", "severity": ""}]
        status = {"initialization": old, "conditions": conditions}
        self._fleet.report(DVP_MACHINES, name, status)

    def until_deleted(self, name: str) -> None:
        """Wait until the core has requested the deletion of a DeckhouseMachine."""
        is_deleted = functools.partial(self.is_deleted, name)
        waiting.until(f"the core deletes the object of {name}", is_deleted)

    def is_deleted(self, name: str) -> bool:
        """Report whether the deletion of a DeckhouseMachine was requested."""
        document = self._fleet.objects.get(DVP_MACHINES, name) or {"metadata": {}}
        return "deletionTimestamp" in document["metadata"]

    def check(self, name: str) -> None:
        """Check all that the reference requires of a machine that runs.

        Raises:
            AssertionError: it would do something else than nothing.
        """
        document = self._fleet.objects.get(DVP_MACHINES, name)
        assert document is not None
        assert document["metadata"]["finalizers"] == [FINALIZER]
        assert document["spec"]["providerID"] == machine_names.provider_id(name)
        status = document["status"]
        assert status["initialization"]["provisioned"]
        assert status["initialization"]["infrastructureProvisioned"]
        assert status["ready"]
        # With either of them a machine is never reconciled again.
        assert not {"failureReason", "failureMessage"} & status.keys()
        assert sorted(row["type"] for row in status["addresses"]) == sorted(ADDRESSES)
        rows = {row["type"]: row for row in status["conditions"]}
        assert rows[CONDITION]["status"] == "True"
        # Others are filled in: each would be a write.
        assert all(r["reason"] and r["lastTransitionTime"] for r in rows.values())
        self._check_parent(name)

    def _check_parent(self, name: str) -> None:
        """Check that VM, disk and Secret are found as the reference finds them."""
        objects = self._fleet.in_parent
        vm = objects.get(MACHINES, name)
        assert vm is not None
        assert labels(name).items() <= vm["metadata"]["labels"].items()
        disk = machine_names.boot_disk(name)
        labelled = [
            item["metadata"]["name"]
            for item in objects.all(DISKS)
            if item["metadata"]["labels"].get("virtualDiskName") == disk
        ]
        assert labelled == [disk]
        secret = objects.get(resources.SECRETS, machine_names.secret(name))
        assert secret is not None
        assert secret["type"] == machine_names.SECRET_TYPE
        assert labels(name).items() <= secret["metadata"]["labels"].items()
        assert secret["data"].keys() == {"userData"}

    def delete(self, name: str) -> None:
        """Delete a machine: VM, then its disks; last, the finalizer.

        The Secret is left to the owner reference.
        """
        vm = self._fleet.in_parent.get(MACHINES, name)
        assert vm is not None
        disks = [
            ref["name"]
            for ref in vm["status"]["blockDeviceRefs"]
            if ref["kind"] == DISKS.kind and not ref.get("hotplugged")
        ]
        self._delete(MACHINES, name)
        for disk in disks:
            self._delete(DISKS, disk)
        self._fleet.objects.patch(DVP_MACHINES, name, metadata={"finalizers": None})
        waiting.until(
            f"Machine {name} is deleted",
            lambda: self._fleet.objects.get(cluster_objects.MACHINES, name) is None,
        )

    def _delete(self, kind: resources.Resource, name: str) -> None:
        objects = self._fleet.in_parent
        objects.delete(kind, name, None)
        waiting.until(f"{name} is deleted", lambda: objects.get(kind, name) is None)
