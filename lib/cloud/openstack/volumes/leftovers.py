"""Detaching, also after an attach or a detach that failed."""

import contextlib
import datetime
from collections.abc import Callable, Hashable, Iterable

from lib.cloud import errors
from lib.cloud.openstack.volumes import native, reads, writes
from lib.cloud.support import absence, expiring
from lib.cloud.volumes import Volume, VolumePhase

STUCK_S = 180.0
"""An attach or a detach that lasts longer has come to nothing.

Source: Nova configuration: [libvirt] device_detach_attempts (8) x
device_detach_timeout (20 s) is the longest that Nova itself tries.
"""


class Leftovers:
    """Removes attachments, whether or not Nova still knows of them.

    Rules: an attachment belongs to one server. What is left of it is released for the
    server that was asked about, or for one that Nova has reported as absent twice. A
    finished attachment is released for the server that was asked about only, and never
    after one answer "not found" (docs/decisions/0190-attachments-of-one-server.md).
    """

    def __init__(
        self,
        read: reads.VolumeReads,
        write: writes.Writes,
        now: Callable[[], datetime.datetime],
        clock: Callable[[], float],
    ) -> None:
        """now: the time of day, which Cinder's times are compared with.

        clock: monotonic seconds.
        """
        self._reads = read
        self._writes = write
        self._now = now
        self._clock = clock
        self._absent = expiring.Expiring[Hashable, float](absence.FORGET_S, clock)

    def detach(self, volume: Volume, server_id: str, deadline: float) -> None:
        """Begin to detach, or take away what is left of an attachment.

        Raises:
            Busy: volume or server allow it not now, or an absence is not confirmed yet.
        """
        if volume.phase is VolumePhase.DETACHING and _is_held(volume, server_id):
            if not self._is_stuck(volume):
                raise _busy("the volume is being detached", volume)
            self._writes.roll_detaching(volume.id, deadline)
        try:
            self._writes.detach(volume.id, server_id, deadline)
        except errors.NotFound as error:
            if error.resource == server_id:
                self._release(volume, server_id, deadline)
            return
        except errors.Busy:
            if volume.phase is not VolumePhase.ATTACHING or not self._is_stuck(volume):
                raise
            # Nova detaches nothing that was never attached; Cinder may let go of it.
            # Before, Nova may still connect the disk that Cinder gives to another.
            self._free(self._of(volume, server_id, deadline), deadline)
        self._absent.drop([_key(volume, server_id)])

    def _release(self, volume: Volume, server_id: str, deadline: float) -> None:
        """Release attachments of which Nova knows nothing.

        Raises:
            Busy: the server's own attachment is finished; a second answer of Nova must
                confirm that it has none.
        """
        held = self._reads.reservations(volume.id, deadline)
        own = [item for item in held if item.instance == server_id]
        self._free([item for item in own if not item.is_finished], deadline)
        if volume.phase is VolumePhase.ATTACHING and self._is_stuck(volume):
            self._free_absent([i for i in held if i.instance != server_id], deadline)
        finished = [item for item in own if item.is_finished]
        if not finished:
            return
        left_s = absence.held_s(self._absent, [_key(volume, server_id)], self._clock)
        if left_s > 0:
            text = f"Nova reports no attachment to server {server_id}, Cinder does"
            text = f"{text}; a second answer of Nova must confirm it"
            raise _busy(text, volume, retry_after_s=left_s)
        self._free(finished, deadline)

    def _free_absent(
        self, others: Iterable[native.Reservation], deadline: float
    ) -> None:
        """Release what is reserved for servers that are absent at a second read."""
        for item in others:
            if item.instance is None or item.is_finished:
                continue
            if self._reads.has_server(item.instance, deadline):
                self._absent.drop([item.instance])
            elif not absence.held_s(self._absent, [item.instance], self._clock):
                self._free([item], deadline)

    def _of(
        self, volume: Volume, server_id: str, deadline: float
    ) -> list[native.Reservation]:
        """List the unfinished attachments of a volume to a server."""
        held = self._reads.reservations(volume.id, deadline)
        return [i for i in held if i.instance == server_id and not i.is_finished]

    def _free(self, attachments: Iterable[native.Reservation], deadline: float) -> None:
        for attachment in attachments:
            with contextlib.suppress(errors.NotFound):
                self._writes.release(attachment.id, attachment.volume_id, deadline)

    def _is_stuck(self, volume: Volume) -> bool:
        since = native.handle(volume).updated_at
        return since is not None and (self._now() - since).total_seconds() > STUCK_S


def _is_held(volume: Volume, server_id: str) -> bool:
    return any(item.instance_id == server_id for item in volume.attachments)


def _key(volume: Volume, server_id: str) -> tuple[str, str]:
    return (volume.id, server_id)


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
    if volume.phase is VolumePhase.FAILED:
        # No status in which Cinder will delete it follows by itself.
        return errors.CloudError(
            f"it is in status {volume.native_phase}; the cloud administrator must"
            " repair it",
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
    why: str,
    volume: Volume,
    error: errors.CloudError | None = None,
    retry_after_s: float | None = None,
) -> errors.Busy:
    return errors.Busy(
        why,
        operation=error.operation if error else "detach volume",
        resource=volume.id,
        request_id=error.request_id if error else "",
        retry_after_s=retry_after_s,
    )
