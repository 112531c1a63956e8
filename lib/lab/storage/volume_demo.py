"""The life of a volume, step by step: act, wait, and show what was observed."""

import contextlib
import pathlib

from lib.kube import errors as kube_errors
from lib.lab import errors
from lib.lab.kube import kube_objects
from lib.lab.run import observed_steps
from lib.lab.storage import loop_disks, volume_client

CLAIM = "mooring-demo"
CLASS = "xfs"
"""ext4 is expanded while mounted with CAP_SYS_RESOURCE alone."""
WRITER, READER = f"{CLAIM}-1", f"{CLAIM}-2"
GIB = 2**30
_EXPANDED_BYTES = 19 * GIB // 10
"""Of 2 GiB, without what the file system needs for itself."""


class VolumeLife:
    """The steps of one volume. attachments: folder in which its links are."""

    def __init__(
        self, client: volume_client.VolumeClient, attachments: pathlib.Path
    ) -> None:
        self._client = client
        self._attachments = attachments
        self._volume_id = ""
        self._other_mounts: frozenset[str] = frozenset()
        self._other_disks: frozenset[str] = frozenset()

    def steps(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps, in order."""
        client = self._client
        return (
            observed_steps.ObservedStep(
                "claim and pod created: bound", self._create, self._bound
            ),
            observed_steps.ObservedStep(
                "attached to the server", _wait, self._attached
            ),
            observed_steps.ObservedStep("staged on the node", _wait, self._staged),
            observed_steps.ObservedStep(
                "the pod writes", _wait, lambda: self._lines(WRITER)
            ),
            observed_steps.ObservedStep(
                "expanded while mounted",
                lambda: client.expand(CLAIM, 2),
                self._expanded,
            ),
            observed_steps.ObservedStep(
                "pod deleted: unmounted", self._delete_writer, self._unstaged
            ),
            observed_steps.ObservedStep(
                "another pod reads the same data",
                lambda: client.pod(READER, CLAIM),
                self._same_data,
            ),
            observed_steps.ObservedStep(
                "pod and claim deleted", self.delete, self._deleted
            ),
            observed_steps.ObservedStep(
                "nothing remains", _wait, self._nothing_remains
            ),
        )

    def delete(self) -> None:
        """Delete what the steps create; fine when it is absent."""
        self._client.delete(WRITER, READER)
        self._client.objects.delete(kube_objects.CLAIM, CLAIM)

    def _mounts(self) -> list[str]:
        """Return the mounts of volumes, without those from before the steps."""
        mounts = self._client.node.mounts()
        return [target for target in mounts if target not in self._other_mounts]

    def _disks(self) -> list[str]:
        """Return the disks of the node, without those from before the steps."""
        # The folder of the links has a neighbor with the files of volumes.
        disks = loop_disks.backed_by(self._attachments.parents[1])
        return [name for name in disks if name not in self._other_disks]

    def _create(self) -> None:
        self._other_mounts = frozenset(self._mounts())
        self._other_disks = frozenset(self._disks())
        # It is there if an earlier demo was interrupted.
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._client.add_class(CLASS)
        self._client.claim(CLAIM, CLASS)
        self._client.pod(WRITER, CLAIM)

    def _bound(self) -> str:
        try:
            _, self._volume_id = self._client.volume(CLAIM)
        except errors.LabError:
            return ""
        return f"volume {self._volume_id}"

    def _attached(self) -> str:
        for document in self._client.objects.all(kube_objects.ATTACHMENT):
            status = document.get("status") or {}
            if status.get("attached") and self._link().exists():
                return f"VolumeAttachment {document['metadata']['name'][:16]}..."
        return ""

    def _link(self) -> pathlib.Path:
        return self._attachments / self._volume_id

    def _staged(self) -> str:
        disks = self._disks()
        targets = [t for t in self._mounts() if t.endswith("/globalmount")]
        if not disks or not targets:
            return ""
        size = self._client.node.size_bytes(targets[0]) / GIB
        return f"{CLASS} of {size:.2f} GiB on /dev/{disks[0]}"

    def _lines(self, pod: str) -> str:
        """Return what a pod has read and written, once it has."""
        return ", ".join(self._client.lines(pod)) if self._has_written(pod) else ""

    def _has_written(self, pod: str) -> bool:
        return self._client.has_written(pod)

    def _expanded(self) -> str:
        client = self._client
        if not client.has_bytes(CLAIM, _EXPANDED_BYTES):
            return ""
        if not client.has_capacity(CLAIM, "2Gi"):
            return ""
        size = client.node.size_bytes(client.mounted(CLAIM)[0]) / GIB
        return f"{size:.2f} GiB, the claim shows 2Gi"

    def _delete_writer(self) -> None:
        self._client.delete(WRITER)

    def _unstaged(self) -> str:
        if self._client.phase(WRITER) or self._mounts():
            return ""
        return "0 mounts"

    def _same_data(self) -> str:
        lines = self._client.lines(READER)
        if not self._has_written(READER):
            return ""
        if lines[:-1] != [WRITER]:
            raise errors.LabError(f"the volume has lost its data: {lines}")
        return f"line of {WRITER} read"

    def _deleted(self) -> str:
        client = self._client
        pods = client.phase(WRITER) or client.phase(READER)
        claim = client.objects.get(kube_objects.CLAIM, CLAIM)
        if pods or claim or client.handles(self._volume_id):
            return ""
        return "0 pods, claims and PersistentVolumes"

    def _nothing_remains(self) -> str:
        files = list(self._attachments.parents[1].rglob(self._volume_id))
        if files or self._disks() or self._mounts():
            return ""
        self._client.remove_class(CLASS)
        return "0 loop devices, mounts and files"


def _wait() -> None:
    """Do nothing: the step follows from those before it."""
