"""What `mooring doctor --cloud=dvp` expects of the chart cloud-provider-dvp."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.cloud import checkup
from lib.cloud.dvp import checkup as parent_checkup
from lib.cloud.dvp import config
from lib.cloud.dvp.machines import capi_kinds
from lib.doctor import deployed
from lib.doctor.chart import CloudName, NamingKind, NamingObject, UmbrellaChart
from lib.kube import client, resources
from lib.migration import reference
from lib.migration.dvp import dvp_changeover
from lib.process import config as process_config
from mooring.commands import memory_files, provider_entry

_CLASSES = resources.Resource(
    "deckhouse.io", "v1alpha1", "dvpinstanceclasses", "DVPInstanceClass", False
)
_STORAGE, _MACHINE = "StorageClass", "VirtualMachineClass"
_IMAGES = ("ClusterVirtualImage", "VirtualImage")


def expected(known: provider_entry.Provider) -> UmbrellaChart:
    """Return what is expected of a release. known: the entry of DVP."""
    return UmbrellaChart(
        dvp_changeover.CHART,
        {
            "dvp-ccm": "dvp-ccm",
            "capdvp": "capdvp",
            **{name: name for name in _SHARED},
            **{f"{name}-dvp": name for name in _SHARED},
        },
        known.config_keys,
        known.variables,
        config.KUBECONFIG,
        (_CLASSES,),
        (
            NamingKind(resources.STORAGE_CLASSES, _of_storage_class),
            NamingKind(_CLASSES, _of_instance_class),
            NamingKind(capi_kinds.TEMPLATES, _of_template),
        ),
        _open,
        _running_reference,
        _of_zones,
    )


_NO_ZONE = "default"
"""Of the reference: what it publishes without zones."""
_SHARED = ("csi-controller", "cloud-data-discoverer")
"""Components of several clouds; the umbrella chart adds the cloud to their names."""


def _open(files: deployed.CloudFiles, timeout_s: float) -> checkup.Checkup:
    """Return the parent as a component sees it.

    Raises:
        ConfigError: the Secret, or a variable of the component, is invalid.
    """
    path = memory_files.write(files)
    settings = config.read(path, files.variables, field=files.title)
    return parent_checkup.ParentCheckup(settings, timeout_s)


def _running_reference(api: client.Api, timeout_s: float) -> tuple[str, ...]:
    observed = reference.read(api, timeout_s, dvp_changeover.REFERENCE)
    return reference.running(observed)


# ---------------------------------------------------------------- flags: pure


def _of_zones(
    component: str, words: Sequence[str]
) -> Iterator[process_config.FieldProblem]:
    """Yield zones that do not constrain where VMs are placed, or with no host."""
    if component != "capdvp":
        return
    flag = "--zones"  # of capdvp
    texts = [word.removeprefix(f"{flag}=") for word in words if word.startswith(flag)]
    zones = ",".join(texts).split(",")
    expected = (
        "values of the label topology.kubernetes.io/zone of hosts of the parent"
        " (global.zones)"
    )
    if not any(zones):
        yield process_config.not_set(flag, f"{expected}: VMs are placed on any host")
    elif _NO_ZONE in zones:
        more = f'{expected}: "{_NO_ZONE}" is the name for a parent without zones'
        yield process_config.required(flag, ",".join(zones), more)


# ---------------------------------------------------------------- names: pure


def _of_storage_class(item: NamingObject) -> Iterator[CloudName]:
    if item.provisioner == dvp_changeover.REFERENCE.driver:
        name = (item.parameters or {}).get("dvpStorageClass", "")
        yield CloudName("parameters.dvpStorageClass", _STORAGE, name)


def _of_instance_class(item: NamingObject) -> Iterator[CloudName]:
    machine, root = _part(item.spec, "virtualMachine"), _part(item.spec, "rootDisk")
    name = str(machine.get("virtualMachineClassName", ""))
    yield CloudName("spec.virtualMachine.virtualMachineClassName", _MACHINE, name)
    yield from _of_image("spec.rootDisk.image", _part(root, "image"))
    for field in ("rootDisk", "etcdDisk"):
        yield from _of_disk(f"spec.{field}", _part(item.spec, field))
    yield from _of_disks("spec", item.spec)


def _of_template(item: NamingObject) -> Iterator[CloudName]:
    spec, field = _part(_part(item.spec, "template"), "spec"), "spec.template.spec"
    name = str(spec.get("vmClassName", ""))
    yield CloudName(f"{field}.vmClassName", _MACHINE, name)
    yield from _of_image(f"{field}.bootDiskImageRef", _part(spec, "bootDiskImageRef"))
    if name := str(spec.get("rootDiskStorageClass", "")):
        yield CloudName(f"{field}.rootDiskStorageClass", _STORAGE, name)
    yield from _of_disks(field, spec)


def _part(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = document.get(key)
    return part if isinstance(part, Mapping) else {}


def _of_image(field: str, image: Mapping[str, Any]) -> Iterator[CloudName]:
    if image.get("kind") in _IMAGES:
        name = str(image.get("name", ""))
        yield CloudName(f"{field}.name", str(image["kind"]), name)


def _of_disks(field: str, spec: Mapping[str, Any]) -> Iterator[CloudName]:
    for number, disk in enumerate(spec.get("additionalDisks") or ()):
        yield from _of_disk(f"{field}.additionalDisks[{number}]", disk)


def _of_disk(field: str, disk: Mapping[str, Any]) -> Iterator[CloudName]:
    """Yield the StorageClass of a disk; without one the parent's default is used."""
    if name := str(disk.get("storageClass", "")):
        yield CloudName(f"{field}.storageClass", _STORAGE, name)
