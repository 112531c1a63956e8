"""What the webhook of VirtualMachines refuses. Pure.

Source: deckhouse/virtualization pkg/controller/vm/internal/validators; vm_webhook.go
judges all of them at every UPDATE, unless the VM is being deleted.
"""

import re
from collections.abc import Callable, Iterator

from lib.lab.dvp import sizing
from lib.lab.dvp.admission import AdmissionRule, Review, at
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    CLASSES,
    CLUSTER_IMAGES,
    GROUP,
    IMAGES,
    MACHINES,
    NODES,
    VOLUMES,
    Json,
)

DEVICES_MAX = 16
_CORES_MAX = 248
_IMAGES = {kind.kind: kind for kind in (IMAGES, CLUSTER_IMAGES)}
_HOST = "kubernetes.io/hostname"


def _name(review: Review) -> str:
    return "" if len(review.name) <= 63 else "the name has 63 characters at most"


def _reserved(review: Review) -> str:
    for field in ("labels", "annotations"):
        for key in review.new["metadata"].get(field) or ():
            if GROUP in key:
                return f"metadata.{field}: keys must not contain {GROUP}: {key}"
    return ""


def _address(review: Review) -> str:
    if review.spec.get("virtualMachineIPAddressName"):
        return ""
    if review.others.get(ADDRESSES, review.namespace, review.name) is None:
        return ""
    return (
        f"the VirtualMachineIPAddress {review.name} exists: set"
        " spec.virtualMachineIPAddressName to use it"
    )


def _references(spec: Json) -> list[tuple[str, str]]:
    return [(row["kind"], row["name"]) for row in spec.get("blockDeviceRefs") or ()]


def _devices_once(review: Review) -> str:
    listed = _references(review.spec)
    if len(set(listed)) < len(listed):
        return "spec.blockDeviceRefs lists a block device more than once"
    rows = review.spec.get("blockDeviceRefs") or ()
    orders = [row["bootOrder"] for row in rows if row.get("bootOrder")]
    return "" if len(set(orders)) == len(orders) else "a bootOrder is used twice"


def _devices_at_most(review: Review) -> str:
    count = len(_references(review.spec)) + sum(1 for _ in _attachments(review))
    return "" if count <= DEVICES_MAX else f"more than {DEVICES_MAX} block devices"


def _attachments(review: Review) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name and device of each attachment of the VM that does not end."""
    for item in review.others.within(ATTACHMENTS, review.namespace):
        device = item.spec.get("blockDeviceRef") or {}
        is_own = item.spec.get("virtualMachineName") == review.name
        if is_own and item.phase != "Terminating":
            yield item.name, (device.get("kind", ""), device.get("name", ""))


def _attached_twice(review: Review) -> str:
    added = set(_references(review.spec)) - set(_references(review.old_spec))
    for name, device in _attachments(review):
        if device in added:
            return f"{' '.join(device)} is already attached by {name}"
    return ""


def _size(review: Review) -> str:
    name = str(review.spec.get("virtualMachineClassName", ""))
    item = review.others.get(CLASSES, "", name)
    policies = (item.spec.get("sizingPolicies") or ()) if item else ()
    return sizing.refusal(name, policies, review.spec)


def _cpu_count(review: Review) -> str:
    cores = int((review.spec.get("cpu") or {}).get("cores", 1))
    sockets = next(n for most, n in _SOCKETS if cores <= most)
    if cores <= _CORES_MAX and cores % sockets == 0:
        return ""
    return (
        f"the number of cores must be {_CORES_MAX} at most, and a multiple of the"
        " sockets"
    )


_SOCKETS = ((16, 1), (32, 2), (64, 4), (10**9, 8))
"""Source: pkg/common/vm, CalculateCoresAndSockets: cores at most, and sockets."""


def _fraction(review: Review) -> str:
    is_new = at(review.spec, "cpu", "coreFraction") == "Auto"
    if is_new and not review.is_same("cpu", "coreFraction"):
        return "coreFraction Auto needs vertical autoscaling, which this parent lacks"
    return ""


def _first_device(review: Review) -> str:
    listed = _references(review.spec)
    if not listed or review.is_same("blockDeviceRefs"):
        return ""
    kind = _IMAGES.get(listed[0][0])
    image = review.others.get(kind, review.namespace, listed[0][1]) if kind else None
    if image is None or image.phase != "Ready" or image.status.get("cdrom"):
        return ""
    return f"{listed[0][0]} {listed[0][1]} is no CD-ROM and cannot be the first device"


def _networks(review: Review) -> str:
    if review.is_same("networks"):
        return ""
    rows = review.spec.get("networks") or ()
    types = [row.get("type") for row in rows]
    return "" if "Main" not in types[1:] else "network Main must be the first"


def _volumes(review: Review) -> str:
    """Judge where the disks can be reached, on the nodes that fit the VM.

    In the lab the claim of a disk names it, and a volume has one list of host names.
    """
    if review.is_same("blockDeviceRefs"):
        return ""
    hosts = [
        hosts
        for item in review.others.within(VOLUMES, "")
        if (hosts := _hosts_of(item.spec)) is not None
        and _claims(item.spec, review.namespace, review.spec)
    ]
    selector = dict(review.spec.get("nodeSelector") or {})
    nodes = {
        node.metadata.labels.get(_HOST, "")
        for node in review.others.within(NODES, "")
        if selector.items() <= dict(node.metadata.labels).items()
    }
    if not hosts or nodes.intersection(*hosts):
        return ""
    return "a topology conflict: no node of the VM reaches all of its disks"


def _claims(volume: Json, namespace: str, spec: Json) -> bool:
    claim = volume.get("claimRef") or {}
    disks = (name for kind, name in _references(spec) if kind == "VirtualDisk")
    is_own = claim.get("namespace") == namespace
    return is_own and any(_is_of(claim.get("name", ""), name) for name in disks)


def _is_of(claim: str, disk: str) -> bool:
    """Report whether a claim is that of a disk: vd-NAME-UID."""
    return (
        re.fullmatch(rf"vd-{re.escape(disk[:200])}-[0-9a-f-]{{36}}", claim) is not None
    )


def _hosts_of(volume: Json) -> set[str] | None:
    """Return the host names that reach a volume; None: all do."""
    required = (volume.get("nodeAffinity") or {}).get("required") or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        return None
    rows = (row for term in terms for row in term.get("matchExpressions") or ())
    return {value for row in rows if row["key"] == _HOST for value in row["values"]}


def _living(check: Callable[[Review], str]) -> Callable[[Review], str]:
    """Return a check that lets pass what is being deleted."""

    def judge(review: Review) -> str:
        return "" if review.new["metadata"].get("deletionTimestamp") else check(review)

    return judge


def _rule(
    name: str,
    check: Callable[[Review], str],
    fact: str,
    *,
    on_update: bool = True,
) -> AdmissionRule:
    return AdmissionRule(
        f"machine-{name}", MACHINES, _living(check), fact, on_update=on_update
    )


RULES = (
    _rule("name", _name, "meta_validator.go", on_update=False),
    _rule("reserved-keys", _reserved, "meta_validator.go"),
    _rule("address", _address, "ipam_validator.go", on_update=False),
    _rule("devices-once", _devices_once, "block_device_refs_validator.go"),
    _rule("sizing", _size, "sizing_policy_validator.go"),
    _rule("device-count", _devices_at_most, "block_device_limiter_validator.go"),
    _rule("cpu-count", _cpu_count, "cpu_count_validator.go"),
    _rule("core-fraction", _fraction, "core_fraction_validator.go"),
    _rule("networks", _networks, "networks_validator.go"),
    _rule("first-device", _first_device, "first_block_device_validator.go"),
    _rule("attachments", _attached_twice, "vmbda_conflict_validator.go"),
    _rule("volumes", _volumes, "pv_node_affinity_validator.go"),
)
"""In the order of the platform. Not here: affinity, spreading and USB devices, which
are typed by the definition, GPUs, and what only warns (legacy systems, user data)."""
