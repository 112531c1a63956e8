"""Reads and writes of the reference's daemons, with the rights of the project's user.

The daemons themselves are not available: these are the requests that their facts
describe, by the same names, selectors and documents. Each returns what the daemon goes
on with, so that a test compares it.

Source: Deckhouse modules/030-cloud-provider-dvp: images/cloud-controller-manager,
images/dvp-csi-driver, images/dvp-common/api.
"""

import json
from collections.abc import Mapping
from typing import Any

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import quantities
from lib.lab.dvp.kinds import ATTACHMENTS, CHECKED_SERVICES, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, kube_objects
from lib.lab.run import waiting
from tests.harness.dvp import reference_state
from tests.harness.dvp.dvp_parent import HOSTNAME_LABEL
from tests.harness.dvp.reference_state import Balancer, Json, ReferenceDisk

TIMEOUT_S = 30.0
VALUE = "loadbalancer"


class ReferenceCalls:
    """The reference's client of a project."""

    def __init__(self, project: Project) -> None:
        self._api = cluster.connect(project.kubeconfig)
        self._space = project.namespace
        self._objects = kube_objects.Objects(self._api, project.namespace)

    def _selected(self, kind: Resource, labels: Mapping[str, str]) -> list[Json]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        page = self._api.list_page(
            kind,
            self._space,
            query={"labelSelector": selector},
            timeout_s=TIMEOUT_S,
        )
        return list(json.loads(page)["items"])

    def _only(self, kind: Resource, labels: Mapping[str, str]) -> Json:
        """Return the object with these labels; the reference fails on several."""
        (item,) = self._selected(kind, labels)
        return item

    def _update(self, kind: Resource, document: Json) -> Json:
        """Replace an object that was read before, as an Update of client-go does."""
        path = kind.path(self._space, document["metadata"]["name"])
        body = json.dumps(document).encode()
        answer = self._api.request("PUT", path, body=body, timeout_s=TIMEOUT_S)
        return dict(json.loads(answer))

    # cloud-controller-manager

    def instance(self, host: str) -> tuple[str, str, str]:
        """Return ID, address and phase of the VM of a Node: the ID is a name.

        InstanceID finds it by its label; the other methods read it by that name.
        """
        name = str(self._only(MACHINES, {HOSTNAME_LABEL: host})["metadata"]["name"])
        vm = self._objects.get(MACHINES, name)
        assert vm is not None
        return name, str(vm["status"]["ipAddress"]), str(vm["status"]["phase"])

    def ensure(self, balancer: Balancer, service: Json) -> tuple[list[Json], set[str]]:
        """Do what EnsureLoadBalancer and UpdateLoadBalancer do, which are the same.

        Return the addresses, and the names of the VMs with the label.
        """
        name = reference_state.lb_name(service["metadata"]["uid"])
        key = reference_state.lb_label(name)
        hosts = reference_state.hosts_of(balancer)
        for host in hosts:
            vm = self._only(MACHINES, {HOSTNAME_LABEL: host})["metadata"]["name"]
            self._objects.patch(MACHINES, vm, metadata={"labels": {key: VALUE}})
        names = {reference_state.vm_name(host) for host in hosts}
        for vm in self.labelled(key) - names:
            self._objects.patch(MACHINES, vm, metadata={"labels": {key: None}})
        document = self._objects.get(balancer.kind, name)
        assert document is not None
        document["metadata"].pop("labels", None)
        document["spec"] |= reference_state.lb_spec(balancer, service)
        self._update(balancer.kind, document)
        return self.addresses(name), self.labelled(key)

    def addresses(self, name: str) -> list[Json]:
        """Return the addresses of a load balancer, polled from the Service."""
        document = self._objects.get(resources.SERVICES, name) or {}
        return list(document["status"]["loadBalancer"].get("ingress") or [])

    def labelled(self, key: str) -> set[str]:
        """Return the names of the VMs with the label of a load balancer."""
        vms = self._selected(MACHINES, {key: VALUE})
        return {str(vm["metadata"]["name"]) for vm in vms}

    def ensure_deleted(self, service: Json) -> None:
        """Do what EnsureLoadBalancerDeleted does: labels, then both kinds."""
        name = reference_state.lb_name(service["metadata"]["uid"])
        key = reference_state.lb_label(name)
        for vm in self.labelled(key):
            self._objects.patch(MACHINES, vm, metadata={"labels": {key: None}})
        for kind in (resources.SERVICES, CHECKED_SERVICES):
            self._objects.delete(kind, name)

    # dvp-csi-driver

    def create_volume(self, volume: ReferenceDisk) -> int:
        """Return the size of a volume, as CreateVolume does; 0: it still waits."""
        disk = self._only(DISKS, {"virtualDiskName": volume.name})
        if disk["status"]["phase"] not in ("Ready", "WaitForFirstConsumer"):
            return 0
        shown = disk["status"].get("capacity") or ""
        return quantities.parse(shown or disk["spec"]["persistentVolumeClaim"]["size"])

    def attachments(self, volume: ReferenceDisk) -> list[tuple[str, str]]:
        """Return names and phases of the attachments of a volume to its Node.

        ControllerPublishVolume, ControllerUnpublishVolume and the deletion of a machine
        by capdvp find them by these labels.
        """
        labels = {
            "virtualMachineDiskName": volume.name,
            "virtualMachineName": volume.host,
        }
        return [
            (item["metadata"]["name"], item.get("status", {}).get("phase", ""))
            for item in self._selected(ATTACHMENTS, labels)
        ]

    def unpublish(self, volume: ReferenceDisk) -> float:
        """Do what ControllerUnpublishVolume does; return the seconds of its wait.

        Raises:
            LabError: both sides were not released in time.
        """
        for name, _ in self.attachments(volume):
            self._objects.delete(ATTACHMENTS, name)
        vm = reference_state.vm_name(volume.host)

        def is_released() -> bool:
            disk = self._objects.get(DISKS, volume.name) or {}
            users = disk.get("status", {}).get("attachedToVirtualMachines") or []
            return not self.attachments(volume) and vm not in [u["name"] for u in users]

        return waiting.until("both sides are released", is_released)

    def publish(self, volume: ReferenceDisk, meta: Mapping[str, Any]) -> None:
        """Do what ControllerPublishVolume does without an attachment.

        meta: labels and owner of the new attachment.
        """
        spec = reference_state.attachment_spec(volume)
        self._objects.make(ATTACHMENTS, volume.attachment, meta, spec=spec)
        waiting.until(
            "it is attached",
            lambda: self.attachments(volume) == [(volume.attachment, "Attached")],
        )

    def expand(self, volume: ReferenceDisk, size: int) -> None:
        """Do what ControllerExpandVolume does, then wait for the parent.

        The real external-resizer repeats the call after a conflict.
        """

        def is_requested() -> bool:
            disk = self._only(DISKS, {"virtualDiskName": volume.name})
            disk["spec"]["persistentVolumeClaim"]["size"] = str(size)
            try:
                self._update(DISKS, disk)
            except kube_errors.Conflict:
                return False
            return True

        waiting.until("the expansion is requested", is_requested)
        waiting.until("it is expanded", lambda: self.create_volume(volume) == size)

    def delete(self, volume: ReferenceDisk) -> None:
        """Do what DeleteVolume does: delete the disk, and wait for its absence."""
        try:
            self._api.delete(DISKS, volume.name, self._space, timeout_s=TIMEOUT_S)
        except kube_errors.NotFound:
            return
        waiting.until(
            "the disk is deleted", lambda: self._objects.get(DISKS, volume.name) is None
        )
