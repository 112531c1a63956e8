"""Reasons and conditions that only machines on DVP have."""

from lib.cloud.steps import ProblemReason

PARTS_READY = "PartsReady"
"""Type of the condition that shows whether disks and Secret of a VM are usable."""
SPEC_APPLIED = "SpecApplied"
"""Type of the condition that shows whether the VM corresponds to the spec."""


class DvpMachineReason(ProblemReason):
    """Problems and states that only machines on DVP have."""

    SIZING_POLICY = "SizingPolicyNotMatched"
    """The class does not allow this number of cores, memory or core fraction."""
    IMAGE_TOO_LARGE = "ImageLargerThanDisk"
    """The boot disk is smaller than the unpacked image."""
    PART_MISSING = "MachinePartMissing"
    """A disk or the Secret of a VM that has run is missing; it is not recreated."""
    DISK_NOT_READY = "DiskNotReady"
    """The parent cannot provision a disk now, and keeps trying."""
    DISK_FAILED = "DiskFailed"
    """A disk has failed for good: only another machine helps."""
    BLOCKED = "VMBlocked"
    """The parent does not start the VM; the message contains its conditions."""
    QUOTA = "QuotaExceeded"
    """The quota of the project is used up; creation continues once it is not."""
    PARTS_READY = "PartsReady"
    """Disks and Secret of the VM are usable."""
    SPEC_APPLIED = "SpecApplied"
    """The VM corresponds to the spec."""
