"""A user of volumes on the lab's real node, with a table of what it has waited for.

See `lib/lab/storage/volume_client.py`.
"""

import dataclasses
import functools
import time
from collections.abc import Callable

from lib.kube.resources import Resource
from lib.lab import errors
from lib.lab.kube import kube_objects
from lib.lab.run import waiting
from lib.lab.storage import attached_disks, storage_node, volume_client


@dataclasses.dataclass
class VolumeUser(volume_client.VolumeClient):
    """Waits for what becomes of claims and pods.

    rows: what was waited for, with the seconds.
    """

    node: storage_node.StorageNode
    disks: attached_disks.AttachedDisks
    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def until(self, what: str, is_so: Callable[[], object]) -> None:
        """Wait until something is so; it becomes a row of the table."""
        seconds = waiting.until(what, is_so, poll_s=0.2)
        self.rows.append((what, f"{seconds:.1f} s"))

    def note(self, what: str, value: object) -> None:
        """Add a row."""
        self.rows.append((what, str(value)))

    def table(self) -> str:
        """Return the rows since the last table."""
        lines = [f"{what:66} {value}" for what, value in self.rows]
        self.rows.clear()
        return "\n".join(lines)

    def _is_absent(self, kind: Resource) -> bool:
        return not self.objects.all(kind)

    def clear(self) -> None:
        """Delete everything, and wait until nothing of it is left anywhere.

        The Node remains until the kubelet has ended, see `forget_node`.

        Raises:
            LabError: a volume is still mounted.
        """
        for kind in (kube_objects.POD, kube_objects.CLAIM):
            for document in self.objects.all(kind):
                name = document["metadata"]["name"]
                self.objects.delete(kind, name, grace_s=None)
        began = time.monotonic()
        for kind in (kube_objects.POD, kube_objects.CLAIM, kube_objects.VOLUME):
            is_absent = functools.partial(self._is_absent, kind)
            self.until(f"no {kind.kind} is left", is_absent)
        self.until("no disk is attached", lambda: not self.disks.disks)
        self.note("seconds until nothing was left", round(time.monotonic() - began))
        for name in volume_client.CLASSES:
            self.remove_class(name)
        if left := self.node.mounts():
            raise errors.LabError(f"still mounted: {', '.join(left)}")

    def forget_node(self) -> None:
        """Delete the Node: no pod must be scheduled to a node that has ended."""
        for kind in (kube_objects.NODE, kube_objects.CSI_NODE):
            self.objects.delete(kind, self.node_name)
