"""From a snapshot to the next step of a request. Pure."""

from lib.kernel.model import EntryKind, top_mount
from lib.node_volumes import decide_expand, decide_publish, decide_stage
from lib.node_volumes.model import (
    NodeCallHistory,
    NodeExpand,
    NodeOutcome,
    NodePublish,
    NodeUnpublish,
    Remove,
    Request,
    Snapshot,
    Stage,
    Unmount,
    Unstage,
)
from lib.node_volumes.paths import wrong_kind


def decide(request: Request, snapshot: Snapshot, past: NodeCallHistory) -> NodeOutcome:
    """Return the next step; an Outcome without one means that the request is fulfilled.

    Each action leaves a state from which this function finds the next one, so that a
    process may be killed before or after any of them.
    """
    match request:
        case Stage():
            return decide_stage.stage(request, snapshot, past)
        case NodePublish():
            return decide_publish.publish(request, snapshot)
        case NodeUnpublish():
            return _removed("target_path", request.target_path, snapshot)
        case Unstage():
            return _removed("staging_target_path", request.staging_path, snapshot)
        case NodeExpand():
            return decide_expand.expand(request, snapshot, past)


def _removed(field: str, path: str, snapshot: Snapshot) -> NodeOutcome:
    """Unmount everything at a path, then delete the path.

    Several mounts lie on each other when another driver did not see its own mount.
    """
    if top_mount(snapshot.mounts, path) is not None:
        return NodeOutcome(action=Unmount(path))
    if snapshot.entry.kind is EntryKind.ABSENT:
        return NodeOutcome()
    if snapshot.entry.kind not in (EntryKind.DIRECTORY, EntryKind.FILE):
        return wrong_kind(field, path, snapshot.entry, "a directory or a file")
    return NodeOutcome(action=Remove(path))
