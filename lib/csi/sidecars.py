"""Reactions of the sidecars to each code of each RPC.

A code is chosen by the reaction of the sidecar, which differs among them.

Source: external-provisioner 6.3.0 pkg/controller (checkError) and its library
sig-storage-lib-external-provisioner 13.0.0 controller (isInfeasibleError, slowSet),
external-attacher 4.13.0 pkg/attacher (isFinalError) and pkg/controller (csiDetach),
external-resizer 2.3.0 pkg/util (IsFinalError, IsInfeasibleError), pkg/controller
(inUseError).
"""

import enum
from collections.abc import Mapping

from lib.volumes.csi_codes import NOT_FINAL, Code


class Next(enum.Enum):
    """Reaction of a sidecar to a failed call."""

    RETRY = "repeats the call until its result is final, also for a deleted claim"
    """Nothing can leak: the last call reports the existing volume."""
    FINAL = "repeats the call with backoff, and never again once the claim is deleted"
    """A volume that exists in the cloud at that moment leaks."""
    RESCHEDULE = "has the scheduler choose another Node; otherwise as FINAL"
    DETACH = "repeats the call with backoff; detaches first when the pod is deleted"
    INFEASIBLE = "reports that size or class are not supported; retries after 5 min"
    """Otherwise as FINAL. The resizer's time is a flag, the provisioner's is fixed."""
    OFFLINE = "waits until no pod uses the volume, where it handles that (--handle-...)"


def provisioner(code: Code) -> Next:
    """Return what external-provisioner does after a failed CreateVolume."""
    if code in NOT_FINAL:
        return Next.RETRY
    if code is Code.INVALID_ARGUMENT:
        return Next.INFEASIBLE
    return Next.RESCHEDULE if code is Code.RESOURCE_EXHAUSTED else Next.FINAL


def attacher(code: Code) -> Next:
    """Return what external-attacher does after a failed ControllerPublishVolume.

    It detaches what it has tried to attach, after any code.
    """
    del code
    return Next.DETACH


def resizer(code: Code) -> Next:
    """Return what external-resizer does after a failed ControllerExpandVolume."""
    if code in NOT_FINAL or code is Code.RESOURCE_EXHAUSTED:
        return Next.RETRY
    if code is Code.FAILED_PRECONDITION:
        return Next.OFFLINE
    infeasible = (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE, Code.NOT_FOUND)
    return Next.INFEASIBLE if code in infeasible else Next.FINAL


CREATION: Mapping[str, frozenset[Code]] = {
    "a volume of the name exists or may appear": NOT_FINAL,
    "an incompatible volume of the name exists": frozenset({Code.ALREADY_EXISTS}),
    "no zone of the topology can hold it": frozenset({Code.RESOURCE_EXHAUSTED}),
    "the quota is used up": frozenset({Code.RESOURCE_EXHAUSTED}),
    "the request can't be fulfilled, nothing exists": frozenset(
        {
            Code.INVALID_ARGUMENT,
            Code.NOT_FOUND,
            Code.OUT_OF_RANGE,
            Code.PERMISSION_DENIED,
        }
    ),
    "it failed and was deleted": frozenset({Code.INTERNAL, Code.RESOURCE_EXHAUSTED}),
    "too many calls": frozenset({Code.UNAVAILABLE}),
}
"""The codes of CreateVolume by situation."""
