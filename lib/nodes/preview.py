"""What a pass would do to a Node, in words: for who wants to know before it is done."""

import dataclasses
import enum

from lib.cloud import errors
from lib.cloud.model import Absent, Address, NotManaged, Seen, Unknown
from lib.kube import nodes as kube_nodes
from lib.nodes import decide, deletion_limit, model
from lib.nodes.model import Action, Snapshot, Topic


class NodeAction(enum.StrEnum):
    """Action on a Node, as `mooring plan nodes` shows it."""

    INITIALIZE = "initialize"
    SET_ADDRESSES = "set addresses"
    SET_LABELS = "set labels"
    ADD_SHUTDOWN_TAINT = "add shutdown taint"
    REMOVE_SHUTDOWN_TAINT = "remove shutdown taint"
    DELETE = "delete"
    KEEP = "keep"
    """The deletion budget does not allow its deletion."""
    WAIT = "wait"
    """Its deletion waits for a second observation."""
    RECORD_EVENT = "record event"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One action that would be executed. node: its name. reason: one sentence."""

    node: str
    action: NodeAction
    reason: str


def rows(seen: Snapshot, settings: model.NodeSettings) -> tuple[Row, ...]:
    """Return what would be done to one Node, in the order in which it would be.

    Pure. settings: with confirm_after_s 0, as only one direct look was made. An Event
    that only reports another action of the same Node is left out.
    """
    if seen.node is None:
        return ()
    actions = _decided(seen, settings)
    node = seen.node
    told = [row for action in actions if (row := _row(node, action)) is not None]
    if not told and _is_in_doubt(seen, node, settings):
        told.append(Row(node.name, NodeAction.WAIT, _IN_DOUBT))
    return tuple(told)


def unread(seen: Snapshot) -> str:
    """Return why a Node could not be judged; empty if it was."""
    match seen.instance:
        case Unknown(error=errors.Ambiguous()):
            return ""
        case Unknown(error=error):
            return error.summary
        case Seen(value=instance) if not instance.addresses_known:
            return "its addresses can't be read"
    return ""


def is_not_managed(seen: Snapshot) -> bool:
    """Report whether the Node belongs to another cloud or region."""
    return isinstance(seen.instance, NotManaged)


_IN_DOUBT = (
    "the cloud's list lacks its instance, but a direct look did not say that it is gone"
)


def _decided(seen: Snapshot, settings: model.NodeSettings) -> list[Action]:
    """Decide as the passes would that follow each other at once."""
    first = decide.decide(seen, settings)
    actions = [*first.actions]
    is_deleted = any(isinstance(action, model.DeleteNode) for action in actions)
    if first.requeue_after_s == 0 and not is_deleted:
        rest = dataclasses.replace(seen, topics=seen.topics - {Topic.LIVENESS})
        actions += decide.decide(rest, settings).actions
    return actions


def _is_in_doubt(
    seen: Snapshot, node: kube_nodes.Node, settings: model.NodeSettings
) -> bool:
    if not (
        settings.watches_lifecycle and settings.deletes and model.may_be_gone(node)
    ):
        return False
    if not node.spec.provider_id and seen.age_s < settings.unnamed_age_s:
        return False
    return isinstance(seen.instance, Absent) and seen.gone_for_s is None


def _row(node: kube_nodes.Node, planned: Action) -> Row | None:
    match planned:
        case model.RecordEvent(is_warning=False):
            return None
        case model.RecordEvent(reason=reason, message=message):
            action, why = NodeAction.RECORD_EVENT, f"{reason}: {message}"
        case model.HoldNodeBack(message):
            action, why = NodeAction.KEEP, message
        case model.DeleteNode():
            action, why = NodeAction.DELETE, _gone(node)
        case model.SetAddresses(addresses):
            action, why = NodeAction.SET_ADDRESSES, _changed(node, addresses)
        case model.InitialiseNode(provider_id, labels):
            action, why = NodeAction.INITIALIZE, _found(provider_id, labels)
        case model.SetLabels(labels):
            action = NodeAction.SET_LABELS
            why = f"{_listed(labels)}, as in the older keys"
        case model.AddShutdownTaint():
            action = NodeAction.ADD_SHUTDOWN_TAINT
            why = "it is not Ready, and its instance is stopped"
        case model.RemoveShutdownTaint():
            action, why = NodeAction.REMOVE_SHUTDOWN_TAINT, "it is Ready again"
    return Row(node.name, action, why)


def _gone(node: kube_nodes.Node) -> str:
    named = node.spec.provider_id or f"the name {node.name}"
    told = (
        f"it is not Ready, and the cloud has no instance with {named};"
        f" a second look {model.NodeSettings().confirm_after_s:g} s later must agree"
    )
    if model.is_confirmed(node):
        return f"{told}; {deletion_limit.CONFIRM_ANNOTATION} is set"
    return told


def _changed(node: kube_nodes.Node, addresses: tuple[Address, ...]) -> str:
    shown = ", ".join(f"{a.type} {a.address}" for a in node.status.addresses)
    wanted = ", ".join(f"{a.type} {a.address}" for a in addresses)
    return f"it shows {shown or 'none'}; the cloud says {wanted}"


def _found(provider_id: str | None, labels: tuple[tuple[str, str], ...]) -> str:
    said = [f"provider id {provider_id}"] if provider_id else []
    said += [f"labels {_listed(labels)}"] if labels else []
    return "; ".join(["its instance is there", *said])


def _listed(labels: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels)
