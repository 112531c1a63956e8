"""CustomResourceDefinitions of a parent cluster, in the lab's own words. Pure.

Fields, enums, limits and CEL rules follow the facts about the platform's API; texts of
messages are ours. Parts that no client of Mooring reads are objects of any content.
"""

from collections.abc import Sequence

from lib.kube.resources import Resource
from lib.lab.dvp import kinds, openapi
from lib.lab.dvp.kinds import Json
from lib.lab.dvp.openapi import (
    anything,
    choice,
    flag,
    loose_text,
    number,
    quantity,
    rows,
    rule,
    struct,
    text,
    words,
)

_DEVICES = ("VirtualDisk", "VirtualImage", "ClusterVirtualImage")
_FRACTION = r"^(Auto|(100|[1-9][0-9]?)%)$"

MACHINE_PHASES = (
    *("Pending", "Starting", "Running", "Stopping", "Stopped"),
    *("Terminating", "Migrating", "Pause", "Degraded"),
)
DISK_PHASES = (
    *("Pending", "Provisioning", "WaitForUserUpload", "WaitForFirstConsumer"),
    *("Ready", "Resizing", "Failed", "PVCLost", "Exporting", "Terminating"),
    "Migrating",
)
ATTACHMENT_PHASES = ("Pending", "InProgress", "Attached", "Failed", "Terminating")
_IMAGE_PHASES = (
    *("Pending", "Provisioning", "WaitForUserUpload", "Ready", "Failed"),
    *("Terminating", "ImageLost"),
)


def definitions() -> Sequence[Json]:
    """Return the definitions of all kinds of virtualization."""
    return (
        _definition(kinds.MACHINES, ("vm",), _machine_spec(), _machine_status()),
        _definition(kinds.DISKS, ("vd",), _disk_spec(), _disk_status()),
        _definition(
            kinds.ATTACHMENTS, ("vmbda",), _attachment_spec(), _attachment_status()
        ),
        _definition(kinds.IMAGES, ("vi",), _image_spec(), _image_status("PVCLost")),
        _definition(
            kinds.CLUSTER_IMAGES, ("cvi",), _cluster_image_spec(), _image_status()
        ),
        _class(),
        _definition(kinds.ADDRESSES, ("vmip",), _address_spec(), _address_status()),
        _definition(
            kinds.ADDRESS_LEASES,
            ("vmipl", "vmiplease"),
            _lease_spec(),
            _status(choice("Bound", "Released"), {}),
        ),
        _definition(
            kinds.OPERATIONS, ("vmop",), _operation_spec(), _operation_status()
        ),
    )


def _definition(kind: Resource, short: Sequence[str], spec: Json, status: Json) -> Json:
    version = _version(kind.version, spec, status)
    return _of_versions(kind, short, [{**version, "storage": True}])


def _version(name: str, spec: Json, status: Json) -> Json:
    whole = struct({"spec": spec, "status": status}, ("spec",))
    phase = {"name": "Phase", "type": "string", "jsonPath": ".status.phase"}
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": whole},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [phase, age],
    }


def _of_versions(
    kind: Resource, short: Sequence[str], versions: Sequence[Json]
) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "shortNames": list(short),
            },
            "versions": list(versions),
        },
    }


def _status(phase: Json, fields: Json) -> Json:
    usual = {
        "phase": phase,
        "conditions": openapi.conditions(),
        "observedGeneration": number(0),
    }
    return struct({**usual, **fields})


def _reference(*kinds_: str) -> Json:
    fields = {"kind": choice(*kinds_), "name": text()}
    return struct(fields, ("kind", "name"))


def _machine_spec() -> Json:
    device = _reference(*_DEVICES)
    device["properties"]["bootOrder"] = number(1)
    cpu = {"cores": number(1), "coreFraction": loose_text(pattern=_FRACTION)}
    fields = {
        "runPolicy": choice(
            *("AlwaysOn", "AlwaysOff", "Manual", "AlwaysOnUnlessStoppedManually"),
            default="AlwaysOnUnlessStoppedManually",
        ),
        "virtualMachineIPAddressName": text(),
        "topologySpreadConstraints": rows(anything()),
        "affinity": anything(),
        "nodeSelector": words(),
        "priorityClassName": loose_text(),
        "tolerations": rows(anything()),
        "disruptions": {
            **struct(
                {"restartApprovalMode": choice("Manual", "Automatic", default="Manual")}
            ),
            "default": {"restartApprovalMode": "Manual"},
        },
        "terminationGracePeriodSeconds": number(0, default=60),
        "enableParavirtualization": flag(default=True),
        "osType": choice("Generic", "Windows", "Legacy", default="Generic"),
        "bootloader": choice("BIOS", "EFI", "EFIWithSecureBoot", default="BIOS"),
        "cpu": struct(cpu, ("cores",)),
        "memory": struct({"size": quantity()}, ("size",)),
        "virtualMachineClassName": text(),
        "blockDeviceRefs": rows(device, least=1, most=16),
        "provisioning": _provisioning(),
        "liveMigrationPolicy": choice(
            *("AlwaysSafe", "PreferSafe", "AlwaysForced", "PreferForced"),
            default="PreferSafe",
        ),
        "networks": rows(_network()),
        "usbDevices": rows(struct({"name": text()}, ("name",)), most=8),
        "gpus": rows(struct({"gpuClassName": text()}, ("gpuClassName",)), most=16),
    }
    required = ("virtualMachineClassName", "cpu", "memory", "blockDeviceRefs")
    return struct(fields, required, _LEGACY)


_LEGACY = (
    rule(
        "self.osType != 'Legacy' || self.bootloader == 'BIOS'",
        "osType Legacy needs bootloader BIOS",
    ),
    rule(
        "self.osType != 'Legacy' || !has(self.provisioning)",
        "osType Legacy has no provisioning",
    ),
    rule(
        "self.osType != 'Legacy' || self.enableParavirtualization"
        " || self.blockDeviceRefs.size() <= 4",
        "osType Legacy without paravirtualization has 4 block devices at most",
    ),
)


def _network() -> Json:
    fields = {
        "type": choice("Main", "Network", "ClusterNetwork"),
        "id": number(0),
        "name": loose_text(),
        "virtualMachineMACAddressName": loose_text(),
        "ipAddressName": loose_text(),
    }
    return struct(fields, ("type",))


def _provisioning() -> Json:
    secret = _reference("Secret")
    secret["properties"]["kind"]["default"] = "Secret"
    members = {"UserData": "userData", "UserDataRef": "userDataRef"}
    members["SysprepRef"] = "sysprepRef"
    rules = [
        rule(
            f"(self.type == '{kind}') == has(self.{member})",
            f"{member} is set if, and only if, type is {kind}",
        )
        for kind, member in members.items()
    ]
    limit = "!has(self.userData) || self.userData.size() <= 2048"
    rules.append(rule(limit, "userData has 2048 characters at most"))
    fields = {
        "type": choice(*members),
        "userData": loose_text(),
        "userDataRef": secret,
        "sysprepRef": secret,
    }
    return struct(fields, ("type",), rules)


def _machine_status() -> Json:
    device = struct(
        {
            "kind": choice(*_DEVICES),
            "name": loose_text(),
            "size": loose_text(),
            "attached": flag(),
            "target": loose_text(),
            "hotplugged": flag(),
            "virtualMachineBlockDeviceAttachmentName": loose_text(),
            "bootOrder": number(1),
        }
    )
    fields = {
        "nodeName": loose_text(),
        "virtualMachineIPAddressName": loose_text(),
        "ipAddress": loose_text(),
        "blockDeviceRefs": rows(device),
        "guestOSInfo": anything(),
        "stats": anything(),
        "migrationState": anything(),
        "recommendedResources": anything(),
        "restartAwaitingChanges": rows(anything()),
        "virtualMachinePods": rows(struct({"name": loose_text(), "active": flag()})),
        "versions": anything(),
        "resources": anything(),
        "networks": rows(anything()),
        "usbDevices": rows(anything()),
    }
    return _status(choice(*MACHINE_PHASES), fields)


def _source(kinds_: Sequence[str], *, with_namespace: bool = False) -> Json:
    """Return where data comes from: the member is the one that the type names."""
    reference = _reference(*kinds_)
    if with_namespace:
        reference["properties"]["namespace"] = loose_text(maxLength=63)
        reference["x-kubernetes-validations"] = [
            rule(
                "self.kind == 'ClusterVirtualImage' ||"
                " (has(self.namespace) && self.namespace.size() > 0)",
                "an object of a namespaced kind needs namespace",
            )
        ]
    secret = struct({"name": loose_text()})
    container = {"image": text(), "imagePullSecret": secret, "caBundle": loose_text()}
    fields = {
        "type": choice("HTTP", "ContainerImage", "ObjectRef", "Upload"),
        "http": struct(
            {"url": text(), "checksum": anything(), "caBundle": loose_text()}, ("url",)
        ),
        "containerImage": struct(container, ("image",)),
        "objectRef": reference,
        "upload": struct({"checksum": anything()}),
    }
    pairs = {"HTTP": "http", "ContainerImage": "containerImage"}
    pairs["ObjectRef"] = "objectRef"
    rules = [
        rule(
            f"(self.type == '{kind}') == has(self.{member})",
            f"{member} is set if, and only if, type is {kind}",
        )
        for kind, member in pairs.items()
    ]
    rules.append(
        rule(
            "self.type == 'Upload' || !has(self.upload)",
            "upload is set only if type is Upload",
        )
    )
    return struct(fields, ("type",), rules)


def _disk_spec() -> Json:
    source = _source(("ClusterVirtualImage", "VirtualImage", "VirtualDiskSnapshot"))
    claim = struct({"storageClassName": loose_text(), "size": quantity()})
    rules = [
        rule(
            "has(self.dataSource) || (has(self.persistentVolumeClaim) &&"
            " has(self.persistentVolumeClaim.size))",
            "a disk without dataSource needs persistentVolumeClaim.size",
        )
    ]
    return struct({"dataSource": source, "persistentVolumeClaim": claim}, (), rules)


def _disk_status() -> Json:
    user = struct({"name": loose_text(), "mounted": flag()})
    fields = {
        "capacity": loose_text(),
        "target": struct({"persistentVolumeClaimName": loose_text()}),
        "progress": loose_text(),
        "uploadCommand": loose_text(),
        "imageUploadURLs": anything(),
        "storageClassName": loose_text(),
        "attachedToVirtualMachines": rows(user),
        "sourceUID": loose_text(),
        "stats": anything(),
        "migrationState": anything(),
    }
    return _status(choice(*DISK_PHASES), fields)


def _attachment_spec() -> Json:
    fields = {"virtualMachineName": text(), "blockDeviceRef": _reference(*_DEVICES)}
    return struct(fields, tuple(fields))


def _attachment_status() -> Json:
    fields = {"virtualMachineName": loose_text()}
    return _status(choice(*ATTACHMENT_PHASES), fields)


def _image_spec() -> Json:
    sources = ("ClusterVirtualImage", "VirtualImage", "VirtualDisk")
    fields = {
        "storage": choice(
            *("ContainerRegistry", "PersistentVolumeClaim", "Kubernetes"),
            default="ContainerRegistry",
        ),
        "persistentVolumeClaim": struct({"storageClassName": loose_text()}),
        "dataSource": _source((*sources, "VirtualDiskSnapshot")),
    }
    return struct(fields, ("dataSource",))


def _cluster_image_spec() -> Json:
    sources = ("ClusterVirtualImage", "VirtualImage", "VirtualDisk")
    source = _source((*sources, "VirtualDiskSnapshot"), with_namespace=True)
    return struct({"dataSource": source}, ("dataSource",))


def _image_status(*more: str) -> Json:
    size = ("stored", "storedBytes", "unpacked", "unpackedBytes")
    fields = {
        "size": struct({name: loose_text() for name in size}),
        "format": loose_text(),
        "cdrom": flag(),
        "target": anything(),
        "progress": loose_text(),
    }
    return _status(choice(*_IMAGE_PHASES, *more), fields)


def _class() -> Json:
    """Return the kind with two versions; fractions differ between them.

    Assumed: objects are not converted, since nothing of Mooring reads fractions.
    """
    old = _version("v1alpha2", _class_spec(number(1, 100)), _class_status())
    new = _version("v1alpha3", _class_spec(loose_text()), _class_status())
    old |= {"storage": True, "deprecated": True}
    return _of_versions(kinds.CLASSES, ("vmc", "vmclass"), [old, new])


def _class_spec(fraction: Json) -> Json:
    cpu = {
        "type": choice("Host", "HostPassthrough", "Discovery", "Model", "Features"),
        "model": loose_text(),
        "features": rows(text()),
        "discovery": anything(),
    }
    cores = {"min": number(1), "max": number(1, 1024), "step": number(1)}
    limits = {"min": quantity(), "max": quantity()}
    memory = {**limits, "step": quantity(), "perCore": struct(limits)}
    policy = {
        "cores": struct(cores, ("min", "max")),
        "memory": struct(memory),
        "coreFractions": rows(fraction),
        "defaultCoreFraction": fraction,
        "dedicatedCores": rows(flag()),
    }
    unchanged = rule("self == oldSelf", "cpu cannot be changed")
    fields = {
        "nodeSelector": struct(
            {"matchLabels": words(), "matchExpressions": rows(anything())}
        ),
        "tolerations": rows(anything()),
        "cpu": struct(cpu, ("type",), [unchanged]),
        "sizingPolicies": rows(struct(policy), most=16),
    }
    return struct(fields, ("cpu",))


def _class_status() -> Json:
    fields = {"availableNodes": rows(text()), "cpuFeatures": anything()}
    phase = choice("Pending", "Ready", "Terminating")
    return _status(phase, {**fields, "maxAllocatableResources": anything()})


def _address_spec() -> Json:
    octet = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
    address = loose_text(pattern=rf"^({octet}\.){{3}}{octet}$")
    rules = [
        rule(
            "(self.type == 'Static') == has(self.staticIP)",
            "staticIP is set if, and only if, type is Static",
        )
    ]
    fields = {"type": choice("Auto", "Static"), "staticIP": address}
    return struct(fields, ("type",), rules)


def _address_status() -> Json:
    fields = {"virtualMachineName": loose_text(), "address": loose_text()}
    return _status(choice("Pending", "Bound", "Attached"), fields)


def _lease_spec() -> Json:
    reference = struct({"name": text(), "namespace": text()}, ("name", "namespace"))
    return struct({"virtualMachineIPAddressRef": reference})


def _operation_spec() -> Json:
    types = ("Start", "Stop", "Restart", "Migrate", "Evict", "Restore", "Clone")
    fields = {
        "type": choice(*types),
        "virtualMachineName": text(),
        "force": flag(),
        "migrate": struct({"nodeSelector": words()}),
        "restore": anything(),
        "clone": anything(),
    }
    rules = [
        rule("self == oldSelf", "an operation cannot be changed"),
        rule("self.type != 'Start' || !has(self.force)", "Start has no force"),
    ]
    return struct(fields, ("type", "virtualMachineName"), rules)


def _operation_status() -> Json:
    phases = ("Pending", "InProgress", "Completed", "Failed", "Terminating")
    return _status(choice(*phases, "Superseded"), {})


def checked_service() -> Json:
    """Return the definition of ServiceWithHealthchecks."""
    port = {
        "name": loose_text(),
        "protocol": choice("TCP", "UDP", "SCTP", default="TCP"),
        "port": number(1, 65535),
        "targetPort": {"x-kubernetes-int-or-string": True},
        "nodePort": number(0, 65535),
    }
    probe = struct(
        {
            "mode": choice("TCP", "HTTP", "PostgreSQL"),
            "tcp": struct({"targetPort": {"x-kubernetes-int-or-string": True}}),
            "http": anything(),
            "postgreSQL": anything(),
            "timeoutSeconds": number(1),
            "successThreshold": number(1),
            "failureThreshold": number(1),
        },
        ("mode",),
    )
    check = {
        "initialDelaySeconds": number(0),
        "periodSeconds": number(1),
        "probes": rows(probe),
    }
    policy = choice("Cluster", "Local")
    fields = {
        "type": choice("ClusterIP", "LoadBalancer"),
        "ports": rows(struct(port, ("port",)), least=1),
        "selector": words(),
        "externalTrafficPolicy": policy,
        "internalTrafficPolicy": policy,
        "healthcheck": struct(check),
        "externalIPs": rows(text()),
        "loadBalancerClass": loose_text(),
        "loadBalancerIP": loose_text(),
        "clusterIP": loose_text(),
    }
    status = struct(
        {
            "conditions": openapi.conditions(),
            "endpointStatuses": rows(anything()),
            "loadBalancer": anything(),
        },
    )
    spec = struct(fields, ("ports",))
    return _definition(kinds.CHECKED_SERVICES, ("swhc",), spec, status)
