"""Machines in a parent as the reference leaves them, in its two generations.

The new one creates the VM first, which then owns disks and Secret; the old one created
the Secret first, without an owner.

Source: Deckhouse modules/030-cloud-provider-dvp, images/capdvp-controller-manager.
"""

import base64
import dataclasses
from typing import Any

from lib.cloud.dvp.machines import machine_names
from lib.kube import resources
from lib.lab.dvp.kinds import DISKS, MACHINES
from lib.lab.dvp.project import CLASS, IMAGE, STORAGE_AT_ONCE, Project
from tests.harness.dvp import dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent

Json = dict[str, Any]
SECRETS = resources.SECRETS
WHOLE = ("VM", "disk", "Secret")


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """Size of a VM."""

    cores: int = 2
    fraction: str = "50%"
    memory: str = "2Gi"


def labels(name: str, **more: str) -> Json:
    """Return the labels of an object of a machine."""
    own = {**dvp_parent.MANAGED, dvp_parent.CLUSTER_LABEL: dvp_parent.CLUSTER}
    return {**own, dvp_parent.HOSTNAME_LABEL: name, **more}


def owner_of(vm: Json) -> list[Json]:
    """Return the owner references of what belongs to a VM."""
    about = vm["metadata"]
    kind = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind}
    return [{**kind, "name": about["name"], "uid": about["uid"]}]


class ReferenceMachines:
    """Creates objects as the reference does."""

    def __init__(
        self, parent: DvpParent, project: Project, size: Size | None = None
    ) -> None:
        self.objects = parent.objects(project)
        self._size = size or Size()

    def leave(self, name: str, *parts: str, is_old: bool = False) -> None:
        """Create parts of a machine. parts: of `WHOLE`."""
        owners: list[Json] = []
        if "VM" in parts:
            vm = self.objects.make(
                MACHINES, name, {"labels": labels(name)}, spec=self._vm(name)
            )
            owners = [] if is_old else owner_of(vm)
        if "disk" in parts:
            self._disk(name, owners)
        if "Secret" in parts:
            self._secret(name, owners, is_old)

    def _vm(self, name: str) -> Json:
        disk = {"kind": DISKS.kind, "name": machine_names.boot_disk(name)}
        secret = {"kind": "Secret", "name": machine_names.secret(name)}
        size = self._size
        return {
            "virtualMachineClassName": CLASS,
            "runPolicy": "AlwaysOnUnlessStoppedManually",
            "liveMigrationPolicy": "PreferSafe",
            "osType": "Generic",
            "bootloader": "EFI",
            "enableParavirtualization": True,
            "cpu": {"cores": size.cores, "coreFraction": size.fraction},
            "memory": {"size": size.memory},
            "provisioning": {"type": "UserDataRef", "userDataRef": secret},
            "blockDeviceRefs": [disk],
        }

    def _disk(self, name: str, owners: list[Json]) -> None:
        disk = machine_names.boot_disk(name)
        image = {"kind": "ClusterVirtualImage", "name": IMAGE}
        claim = {"storageClassName": STORAGE_AT_ONCE, "size": "64Mi"}
        about = {"labels": labels(name, virtualDiskName=disk)}
        self.objects.make(
            DISKS,
            disk,
            {**about, "ownerReferences": owners},
            spec={
                "dataSource": {"type": "ObjectRef", "objectRef": image},
                "persistentVolumeClaim": claim,
            },
        )

    def _secret(self, name: str, owners: list[Json], is_old: bool) -> None:
        data = {"userData": base64.b64encode(b"#cloud-config").decode()}
        about = {"labels": labels(name), "ownerReferences": owners}
        more: Json = {} if is_old else {"immutable": True}
        self.objects.make(
            SECRETS,
            machine_names.secret(name),
            about,
            type=machine_names.SECRET_TYPE,
            data=data,
            **more,
        )

    def vm(self, name: str) -> Json:
        """Return what must not change of a VM."""
        vm = self.objects.get(MACHINES, name)
        assert vm is not None
        about = vm["metadata"]
        kept = {key: about[key] for key in ("uid", "generation")}
        return {**kept, "spec": vm["spec"]}
