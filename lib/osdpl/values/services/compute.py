"""Values of the service compute: Nova on local disks, and libvirt."""

from collections.abc import Iterator, Mapping
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import KeyPart, Shape
from lib.osdpl.values.service import Chart, Pool, Service
from lib.osdpl.values.services import common, networking
from lib.process import config

_IMAGE_TYPES = {"local": "qcow2", "qcow2": "qcow2", "raw": "raw", "lvm": "lvm"}
_SSH = secret_shapes.ssh_secret("nova")
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
    own |= {"manifests": off, "pod": _pod()}
    base = common.openstack(context, contract, "compute")
    return common.join(base, own, common.program(context, "nova"))


def _pod() -> model.Tree:
    """Return short names of hosts, and noVNC in the network of its pod."""
    return {
        "use_fqdn": {"compute": False},
        "useHostNetwork": {"novncproxy": False},
    }


def _ssh(context: Context) -> model.Tree:
    """Return the SSH key with which disks are moved between compute nodes."""
    return {
        "enabled": True,
        "public_key": context.credentials.text(_SSH, "public"),
        "private_key": context.credentials.text(_SSH, "private"),
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


def _ceph(context: Context) -> Iterator[config.FieldProblem]:
    path = "features.nova.images.backend"
    disks = context.get(path)
    if disks == "ceph":
        expected = f"one of {', '.join(_IMAGE_TYPES)}: Ceph is not supported yet"
        yield config.FieldProblem(f"spec.{path}", disks, expected)


SERVICE = Service(
    name="compute",
    charts=(
        Chart(
            name="libvirt",
            release="openstack-libvirt",
            values=libvirt,
            daemonsets=("libvirt_libvirt",),
            has_conf_only=False,
        ),
        Chart(
            name="nova",
            release="openstack-nova",
            values=nova,
            needs=("database", "memcached", "messaging", "identity"),
            is_long=True,
            replicas={
                "osapi": (1, 3, 6, 15),
                "api_metadata": (1, 3, 3, 3),
                "conductor": (1, 3, 3, 3),
                "scheduler": (1, 3, 3, 7),
                "novncproxy": (1, 3, 3, 3),
                "spiceproxy": (1, 3, 3, 3),
                "serialproxy": (1, 3, 3, 3),
                "compute_ironic": (1, 1, 1, 1),
            },
            budgets={"osapi": (0, 2, 2, 2), "metadata": (0, 2, 2, 2)},
            counted={"metadata": "api_metadata"},
            pool=Pool(sections=("database", "api_database")),
            # Source: the reference, templates/size; the APIs are run by uWSGI here.
            settings={
                "nova_api_uwsgi.uwsgi.processes": (4, 1, 8, 8),
                "nova_metadata_uwsgi.uwsgi.processes": (4, 1, 8, 8),
                "nova.conductor.workers": (4, 1, 8, 8),
                "nova.scheduler.workers": (4, 1, 1, 1),
                "nova.DEFAULT.block_device_allocate_retries": 600,
                "nova.DEFAULT.block_device_allocate_retries_interval": 10,
                "nova.DEFAULT.report_interval": 30,
                "nova.DEFAULT.service_down_time": 180,
                "nova.DEFAULT.rpc_response_timeout": 60,
                "nova.neutron.timeout": 300,
                "nova.filter_scheduler.host_subset_size": 3,
            },
            in_parallel=("compute",),
            daemonsets=("nova_compute",),
        ),
    ),
    defaults={
        "nova": {
            "images": {"backend": "local"},
            "console": {"novnc": {"enabled": True}, "spice": {"enabled": False}},
            "allocation_ratios": {"cpu": 8.0, "disk": 1.6, "ram": 1.0},
        }
    },
    user="nova",
    accounts=(
        "nova",
        "service",
        "neutron",
        "ironic",
        "placement",
        "cinder",
        "test",
    ),
    secrets=(
        Shape(
            name=_SSH, fields=(("public", KeyPart(False)), ("private", KeyPart(True)))
        ),
    ),
    endpoints={
        "compute": ("nova", "api"),
        "compute_novnc_proxy": ("novncproxy", "novnc_proxy"),
        "compute_spice_proxy": ("spiceproxy", "spice_proxy"),
    },
    node_features=("nova",),
    unsupported=(
        "features.nova.libvirt.tls.enabled",
        "features.nova.console.novnc.tls.enabled",
        "features.nova.images.encryption.enabled",
    ),
    ceph=_ceph,
)
