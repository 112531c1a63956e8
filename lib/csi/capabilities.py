"""Which ways of using a volume there are, and what each needs.

Source: CSI specification 1.12.0, VolumeCapability.
"""

from collections.abc import Collection, Sequence

from lib.csi.spec import csi_pb2
from lib.volumes.csi_codes import Code, RefusedCall

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
    """Judge one capability by itself.

    Raises:
        Refused: INVALID_ARGUMENT.
    """
    if not capability.WhichOneof("access_type"):
        text = f"{field}.access_type is not set; want block or mount"
        raise RefusedCall(Code.INVALID_ARGUMENT, text)
    mode = capability.access_mode.mode
    if mode not in ONE_NODE | MANY_READ | MANY_WRITE:
        raise RefusedCall(
            Code.INVALID_ARGUMENT,
            f"{field}.access_mode is {_name(mode)}; want one of {_names()}",
        )


def wrong(capability: csi_pb2.VolumeCapability, is_shareable: bool | None) -> str:
    """Return why a volume can't be used so; empty when it can.

    is_shareable: None when that is not known yet.
    """
    mode = capability.access_mode.mode
    if mode in MANY_WRITE and capability.WhichOneof("access_type") == "mount":
        return (
            f"access_mode {_name(mode)} needs access_type block: a file system that"
            " several nodes write is destroyed"
        )
    if mode not in ONE_NODE and is_shareable is False:
        return (
            f"access_mode {_name(mode)} needs a volume type that allows several nodes"
        )
    return ""


def check_all(capabilities: Sequence[csi_pb2.VolumeCapability]) -> None:
    """Judge the capabilities of a request, of which there must be some.

    Raises:
        Refused: INVALID_ARGUMENT.
    """
    if not capabilities:
        text = "volume_capabilities is empty; want at least one"
        raise RefusedCall(Code.INVALID_ARGUMENT, text)
    for number, one in enumerate(capabilities):
        check(one, f"volume_capabilities[{number}]")


def are_shared(capabilities: Collection[csi_pb2.VolumeCapability]) -> bool:
    """Report whether any of them is for several nodes at once."""
    return any(one.access_mode.mode not in ONE_NODE for one in capabilities)


def _name(mode: csi_pb2.VolumeCapability.AccessMode.Mode) -> str:
    known = Mode.Mode.DESCRIPTOR.values_by_number
    return known[mode].name if mode in known else str(mode)


def _names() -> str:
    return ", ".join(_name(one) for one in sorted(ONE_NODE | MANY_READ | MANY_WRITE))
