"""Reasons and conditions that only machines on zVirt have."""

from lib.cloud.steps import ProblemReason

SPEC_APPLIED = "SpecApplied"
"""Type of the condition that shows whether the VM corresponds to the spec."""


class ZvirtMachineReason(ProblemReason):
    """Problems and states that only machines on zVirt have."""

    NO_ADDRESS = "NoAddressReported"
    """The VM is up, and its guest agent has reported no address that counts."""
    RESTARTED = "VMRestarted"
    """A VM that had run was down, and is started again."""
    CLONE_FAILED = "CloneFailed"
    """The disk of a new VM could not be copied; the VM is replaced."""
    NO_HOST = "NoCapacity"
    """No host of the engine cluster can run the VM; the message is the scheduler's."""
    QUOTA = "QuotaExceeded"
    """A quota of the engine refuses the VM or its disk."""
    BOOT_DISK = "BootDiskUnclear"
    """Which disk of a VM is its boot disk is not certain: none of them is changed."""
    SPEC_APPLIED = "SpecApplied"
    """The VM corresponds to the spec."""
