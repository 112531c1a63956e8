"""Options of mkfs on their way from a StorageClass to a node.

csi-controller checks them when a volume is created and writes them into the volume
context; csi-node checks them again, since a PersistentVolume can be written by hand.
"""

from collections.abc import Iterable, Mapping

from lib.csi.spec import csi_pb2
from lib.node_volumes import decide_stage, mkfs_options
from lib.volumes.csi_codes import Code, RefusedCall

KEY = mkfs_options.KEY


def words(values: Mapping[str, str], fs_type: str) -> tuple[str, ...]:
    """Return the options in parameters or a volume context.

    fs_type: of the file system, empty for the default.

    Raises:
        RefusedCall: INVALID_ARGUMENT; an option is not in the list of the file system.
    """
    try:
        return mkfs_options.read(
            values.get(KEY, ""), fs_type.lower() or decide_stage.FS_TYPES[0]
        )
    except ValueError as error:
        raise RefusedCall(Code.INVALID_ARGUMENT, f"{KEY}: {error}") from error


def context(
    parameters: Mapping[str, str], capabilities: Iterable[csi_pb2.VolumeCapability]
) -> dict[str, str]:
    """Return the part of a StorageClass's parameters for the volume context.

    The options must be valid for the file system of each capability. A raw block
    volume is not formatted: there they are checked as of the default file system.

    Raises:
        RefusedCall: INVALID_ARGUMENT; an option is not in the list of a file system.
    """
    if not parameters.get(KEY, "").strip():
        return {}
    for fs_type in sorted({capability.mount.fs_type for capability in capabilities}):
        words(parameters, fs_type)
    return {KEY: parameters[KEY]}
