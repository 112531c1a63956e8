"""Problems of the VMs of Nodes, for a diagnosis: their names and guest agents."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence

from lib.cloud import checkup, provider_id
from lib.cloud.model import InstanceRef
from lib.cloud.zvirt import client, searching
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import lists

_NAMES = (
    "rename all but one, or set --data-center of zvirt-ccm, which selects those of one"
    " data center"
)
_AGENT = (
    "install and start the guest agent in the image; a new Node waits until it reports"
    " an address"
)


def problems(
    access: client.EngineClient, refs: Collection[InstanceRef], timeout_s: float
) -> tuple[checkup.InstanceProblem, ...]:
    """Return the problems of the VMs of Nodes. timeout_s: of each search.

    Raises:
        CloudError: they are not known.
    """
    managed = [
        ref for ref in refs if not provider_id.not_managed(ref, provider_id.ZVIRT)
    ]
    items: dict[str, Item] = {}
    for text in lists.searches((), {ref.node_name for ref in managed}):
        read = searching.find(
            access, lists.VMS, text, lists.FOLLOW, timeout_s=timeout_s
        )
        items |= {item.id: item for item in read}
    by_name = collections.defaultdict(list)
    for item in items.values():
        by_name[str(item.entity.name or "").lower()].append(item)
    return tuple(
        problem
        for ref in sorted(managed, key=lambda ref: ref.node_name)
        for problem in _of_node(ref, by_name)
    )


def _of_node(
    ref: InstanceRef, by_name: Mapping[str, Sequence[Item]]
) -> Iterator[checkup.InstanceProblem]:
    vms = by_name.get(ref.node_name.lower(), ())
    if len(vms) > 1:
        ids = ", ".join(sorted(vm.id for vm in vms))
        text = f"{len(vms)} VMs have this name: {ids}"
        yield checkup.InstanceProblem(ref.node_name, text, _NAMES)
    own = provider_id.parse(ref.provider_id).id if ref.provider_id else ""
    for vm in vms:
        is_of_node = vm.id == own if own else len(vms) == 1
        if is_of_node and vm.status == "up" and not vm.entity.reported_devices:
            text = f"no guest agent reports addresses of VM {vm.entity.name}"
            yield checkup.InstanceProblem(ref.node_name, text, _AGENT)
