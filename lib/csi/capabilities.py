"""Volume capabilities: the supported access modes, and what each requires.

Source: CSI specification 1.12.0, VolumeCapability.
"""

from collections.abc import Collection, Sequence

from lib.csi.spec import csi_pb2
from lib.volumes.csi_codes import Code, RefusedCall, invalid

Mode = csi_pb2.VolumeCapability.AccessMode

ONE_NODE = frozenset(
    {
        Mode.SINGLE_NODE_WRITER,
        Mode.SINGLE_NODE_READER_ONLY,
        Mode.SINGLE_NODE_SINGLE_WRITER,
        Mode.SINGLE_NODE_MULTI_WRITER,
    }
)
MANY_READ = frozenset({Mode.MULTI_NODE_READER_ONLY})
MANY_WRITE = frozenset({Mode.MULTI_NODE_SINGLE_WRITER, Mode.MULTI_NODE_MULTI_WRITER})


def check(capability: csi_pb2.VolumeCapability, field: str) -> None:
    """Validate one capability by itself.

    Raises:
        RefusedCall: INVALID_ARGUMENT.
    """
    if not capability.WhichOneof("access_type"):
        text = f"{field}.access_type: not set: must be block or mount"
        raise RefusedCall(Code.INVALID_ARGUMENT, text)
    mode = capability.access_mode.mode
    if mode not in ONE_NODE | MANY_READ | MANY_WRITE:
        text = invalid(f"{field}.access_mode", _name(mode), f"one of {_names()}")
        raise RefusedCall(Code.INVALID_ARGUMENT, text)


def wrong(capability: csi_pb2.VolumeCapability, is_shareable: bool | None) -> str:
    """Return why a volume does not support a capability; empty when it does.

    is_shareable: None when unknown yet.
    """
    mode = capability.access_mode.mode
    if mode in MANY_WRITE and capability.WhichOneof("access_type") == "mount":
        return (
            f"access_mode {_name(mode)} requires access_type block: several nodes"
            " that write to one file system destroy it"
        )
    if mode not in ONE_NODE and is_shareable is False:
        return (
            f"access_mode {_name(mode)} requires a volume type that allows several"
            " nodes"
        )
    return ""


def check_all(capabilities: Sequence[csi_pb2.VolumeCapability]) -> None:
    """Validate the capabilities of a request; at least one is required.

    Raises:
        RefusedCall: INVALID_ARGUMENT.
    """
    if not capabilities:
        raise RefusedCall(Code.INVALID_ARGUMENT, "volume_capabilities: not set")
    for number, capability in enumerate(capabilities):
        check(capability, f"volume_capabilities[{number}]")


def are_shared(capabilities: Collection[csi_pb2.VolumeCapability]) -> bool:
    """Report whether any capability is for several nodes."""
    return any(
        capability.access_mode.mode not in ONE_NODE for capability in capabilities
    )


def are_readers(capability: csi_pb2.VolumeCapability) -> bool:
    """Report whether several nodes read a volume at the same time, and none writes."""
    return capability.access_mode.mode in MANY_READ


def _name(mode: csi_pb2.VolumeCapability.AccessMode.Mode) -> str:
    known = Mode.Mode.DESCRIPTOR.values_by_number
    return known[mode].name if mode in known else str(mode)


def _names() -> str:
    return ", ".join(_name(mode) for mode in sorted(ONE_NODE | MANY_READ | MANY_WRITE))
