"""Values of the service compute: Nova on local disks, and libvirt."""

from collections.abc import Mapping
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.services import common, networking

_IMAGE_TYPES = {"local": "qcow2", "qcow2": "qcow2", "raw": "raw", "lvm": "lvm"}
_CEPH_OFF = {"ceph": {"enabled": False}}


def libvirt(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart libvirt."""
    interface = context.require("features.nova.live_migration_interface")
    options = {"libvirt": {"listen_interface": interface}}
    own = {
        "network": {"backend": ["openvswitch"]},
        "conf": {**_CEPH_OFF, "dynamic_options": options},
    }
    return common.join(common.infra(context, contract), own)


def nova(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart nova."""
    interface = context.require("features.nova.live_migration_interface")
    console = context.get("features.nova.console", {})
    own = {
        "console": {"console_kind": console_kind(console)},
        "network": {"backend": ["openvswitch"], "ssh": _ssh(context)},
        "conf": {
            **_CEPH_OFF,
            "hypervisor": {"host_interface": interface},
            "libvirt": {"live_migration_interface": interface},
            "nova": _conf(context),
        },
    }
    # The metadata API needs no public name: agents use its Service.
    names = ("ingress_metadata", "service_ingress_metadata")
    off = {name: False for name in names if name in contract.manifests}
    own |= {"manifests": off, "pod": {"use_fqdn": {"compute": False}}}
    base = common.openstack(context, contract, "compute")
    return common.join(base, own, common.program(context, "nova"))


def _ssh(context: Context) -> model.Tree:
    """Return the SSH key with which disks are moved between compute nodes."""
    secret = secret_shapes.ssh_secret("nova")
    return {
        "enabled": True,
        "public_key": context.credentials.text(secret, "public"),
        "private_key": context.credentials.text(secret, "private"),
    }


def console_kind(console: Mapping[str, Any]) -> str:
    """Return the kind of console; the chart has one, noVNC unless it is disabled."""
    if console.get("novnc", {}).get("enabled", True):
        return "novnc"
    return "spice" if console.get("spice", {}).get("enabled", False) else "none"


def _conf(context: Context) -> model.Tree:
    ratios = context.get("features.nova.allocation_ratios", {})
    # Ratios that are set later by the placement API win over initial ones; 0: not set.
    default = {
        name: value
        for resource in ("cpu", "disk", "ram")
        if resource in ratios
        for name, value in (
            (f"initial_{resource}_allocation_ratio", ratios[resource]),
            (f"{resource}_allocation_ratio", 0.0),
        )
    }
    images = context.get("features.nova.images", {})
    disks: dict[str, Any] = {
        "images_type": _IMAGE_TYPES[images.get("backend", "local")]
    }
    if disks["images_type"] == "lvm":
        group = "features.nova.images.lvm.volume_group"
        disks["images_volume_group"] = context.require(group)
    vcpu = context.get("features.nova.vcpu_type")
    if vcpu:
        disks |= _cpu(str(vcpu))
    secret = {"metadata_proxy_shared_secret": networking.metadata_secret(context)}
    return {"DEFAULT": default, "libvirt": disks, "neutron": secret}


def _cpu(models: str) -> dict[str, str]:
    """Return the CPU mode: host-model, host-passthrough, or custom models."""
    if models in ("host-model", "host-passthrough"):
        return {"cpu_mode": models}
    return {"cpu_mode": "custom", "cpu_models": models}
