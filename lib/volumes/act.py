"""Carries actions out: one write of the cloud each."""

from lib.cloud.volumes import VolumeId, Volumes
from lib.volumes.model import (
    Action,
    AttachVolume,
    CreateVolume,
    DeleteVolume,
    DetachVolume,
    ResizeVolume,
    RetypeVolume,
)


def act(cloud: Volumes, action: Action) -> VolumeId | None:
    """Carry one action out; return the ID of a volume that it created.

    Raises:
        CloudError: the cloud refuses, or did not answer.
    """
    match action:
        case CreateVolume():
            return cloud.create(action.spec).id
        case DeleteVolume():
            cloud.delete(action.id)
        case AttachVolume():
            cloud.attach(action.volume, action.instance_id)
        case DetachVolume():
            cloud.detach(action.volume, action.instance_id)
        case ResizeVolume():
            cloud.resize(action.volume, action.size_bytes)
        case RetypeVolume():
            cloud.retype(action.volume, action.change)
    return None
