"""Which field of a request led to an action that failed, for messages. Pure."""

from lib.node_volumes import mkfs_options
from lib.node_volumes.model import (
    Action,
    MakeDirectory,
    MakeFile,
    MakeFileSystem,
    MountDisk,
    NodePublish,
    Request,
    Stage,
)


def named(request: Request, action: Action | None) -> str:
    """Return the field, its value, and what would be valid; empty for no field."""
    match action:
        case MountDisk(fs_type=fs_type) if isinstance(request, Stage):
            return _mount_flags(request, fs_type)
        case MakeFileSystem(fs_type=fs_type, options=options):
            return _format(fs_type, " ".join(options))
        case MakeDirectory(path) | MakeFile(path):
            is_target = isinstance(request, NodePublish)
            field = "target_path" if is_target else "staging_target_path"
            return f'{field}: value "{path}": must be a path that can be created'
    return ""


def _mount_flags(request: Stage, fs_type: str) -> str:
    if not request.mount_flags:
        return ""
    flags = ",".join(request.mount_flags)
    return f'mount_flags: value "{flags}": must be options of {fs_type} or mount(8)'


def _format(fs_type: str, options: str) -> str:
    text = f'fs_type: value "{fs_type}": must be one whose programs are installed'
    if not options:
        return text
    return f'{text}; {mkfs_options.KEY}: value "{options}": must suit the disk'
