"""Detaching, also after an attach or a detach that failed."""

import datetime
from collections.abc import Callable

from lib.cloud import errors
from lib.cloud.openstack.volumes import native, reads, writes
from lib.cloud.volumes import Volume, VolumePhase

STUCK_S = 180.0
"""An attach or a detach that lasts longer has come to nothing.

Source: Nova configuration: [libvirt] device_detach_attempts (8) x
device_detach_timeout (20 s) is the longest that Nova itself tries.
"""


class Leftovers:
    """Removes attachments, whether or not Nova still knows of them."""

    def __init__(
        self,
        read: reads.VolumeReads,
        write: writes.Writes,
        now: Callable[[], datetime.datetime],
    ) -> None:
        """now: the time of day, which Cinder's times are compared with."""
        self._reads = read
        self._writes = write
        self._now = now

    def detach(self, volume: Volume, server_id: str, deadline: float) -> None:
        """Begin to detach, or take away what is left of an attachment.

        Raises:
            Busy: volume or server allow it not now.
        """
        if volume.phase is VolumePhase.DETACHING:
            if not self._is_stuck(volume):
                raise _busy("the volume is being detached", volume)
            self._writes.roll_detaching(volume.id, deadline)
        try:
            self._writes.detach(volume.id, server_id, deadline)
        except errors.NotFound as error:
            if error.resource == server_id:
                self._release(volume, server_id, deadline)
                self.free(volume, deadline)
        except errors.Busy:
            if volume.phase is not VolumePhase.ATTACHING:
                raise
            # Nova detaches nothing that was never attached; Cinder may let go of it.
            self._release(volume, server_id, deadline)
            self.free(volume, deadline)

    def free(self, volume: Volume, deadline: float) -> None:
        """Release a volume for which an attach failed long ago.

        Cinder itself refuses when Nova knows of the attachment.

        Raises:
            Busy: Nova does.
        """
        if volume.phase is not VolumePhase.ATTACHING or not self._is_stuck(volume):
            return
        held = self._reads.reservations(volume.id, deadline)
        for attachment in held:
            if attachment.status != "attached":
                self._writes.release(attachment.id, volume.id, deadline)
        if not held:
            self._writes.unreserve(volume.id, deadline)

    def _is_stuck(self, volume: Volume) -> bool:
        since = native.handle(volume).updated_at
        return since is not None and (self._now() - since).total_seconds() > STUCK_S

    def _release(self, volume: Volume, server_id: str, deadline: float) -> None:
        """Delete the attachments to a server that Nova knows nothing of."""
        for reservation in self._reads.reservations(volume.id, deadline):
            if reservation.instance != server_id:
                continue
            try:
                self._writes.release(reservation.id, volume.id, deadline)
            except errors.NotFound:
                continue


def judge_deletion(volume: Volume, error: errors.CloudError) -> errors.CloudError:
    """Return why a volume that is there could not be deleted."""
    if volume.attachments:
        where = ", ".join(attachment.holder for attachment in volume.attachments)
        return errors.AttachedElsewhere(
            f"it is attached to {where}",
            operation=error.operation,
            resource=volume.id,
            request_id=error.request_id,
        )
    if is_deletable(volume):
        return errors.InUse(
            f"Cinder refuses to delete it in status {volume.native_phase!r}: it has"
            " snapshots, or belongs to a group; delete those first",
            operation=error.operation,
            resource=volume.id,
            request_id=error.request_id,
        )
    return _busy(f"its status is {volume.native_phase!r}", volume, error)


def is_deletable(volume: Volume) -> bool:
    """Report whether Cinder deletes a volume in this status when nothing needs it.

    Source: cinder/volume/api.py (delete).
    """
    deletable = ("available", "error", "error_restoring", "error_extending")
    return volume.native_phase in deletable and not volume.attachments


def _busy(
    why: str, volume: Volume, error: errors.CloudError | None = None
) -> errors.Busy:
    return errors.Busy(
        why,
        operation=error.operation if error else "detach volume",
        resource=volume.id,
        request_id=error.request_id if error else "",
    )
