"""From a snapshot to the next step of a request. Pure."""

from lib.kernel.model import EntryKind, top_mount
from lib.node_volumes import decide_expand, decide_publish, decide_stage
from lib.node_volumes.model import (
    Expand,
    Outcome,
    Past,
    Publish,
    Remove,
    Request,
    Snapshot,
    Stage,
    Unmount,
    Unpublish,
    Unstage,
)
from lib.node_volumes.paths import wrong_kind


def decide(request: Request, snapshot: Snapshot, past: Past) -> Outcome:
    """Return the next step; an Outcome without one means that the request is fulfilled.

    Each action leaves a state from which this function finds the next one, so that a
    process may be killed before or after any of them.
    """
    match request:
        case Stage():
            return decide_stage.stage(request, snapshot, past)
        case Publish():
            return decide_publish.publish(request, snapshot)
        case Unpublish():
            return _removed("target_path", request.target_path, snapshot)
        case Unstage():
            return _removed("staging_target_path", request.staging_path, snapshot)
        case Expand():
            return decide_expand.expand(request, snapshot, past)


def _removed(field: str, path: str, snapshot: Snapshot) -> Outcome:
    """Unmount everything at a path, then delete the path.

    Several mounts lie on each other when another driver did not see its own mount.
    """
    if top_mount(snapshot.mounts, path) is not None:
        return Outcome(action=Unmount(path))
    if snapshot.entry.kind is EntryKind.ABSENT:
        return Outcome()
    if snapshot.entry.kind not in (EntryKind.DIRECTORY, EntryKind.FILE):
        return wrong_kind(field, path, snapshot.entry, "a directory or a file")
    return Outcome(action=Remove(path))
