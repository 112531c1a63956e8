"""Actions that a reconciliation would execute on a Node, for `mooring plan nodes`."""

import dataclasses
import enum

from lib.cloud import errors
from lib.cloud.model import Absent, Address, NotManaged, Seen, Unknown
from lib.kube import nodes as kube_nodes
from lib.nodes import decide, deletion_budget, model
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


def rows(snapshot: Snapshot, settings: model.NodeSettings) -> tuple[Row, ...]:
    """Return the actions on one Node, in the order of their execution.

    Pure. settings: with confirm_after_s 0, since there was only one direct read. An
    Event that only reports another action on the same Node is omitted.
    """
    if snapshot.node is None:
        return ()
    actions = _decided(snapshot, settings)
    node = snapshot.node
    planned = [row for action in actions if (row := _row(node, action)) is not None]
    if not planned and _is_in_doubt(snapshot, node, settings):
        planned.append(Row(node.name, NodeAction.WAIT, _IN_DOUBT))
    return tuple(planned)


def unread(snapshot: Snapshot) -> str:
    """Return why the state of a Node is unknown; empty if it is known."""
    match snapshot.instance:
        case Unknown(error=errors.Ambiguous()):
            return ""
        case Unknown(error=error):
            return error.summary
        case Seen(value=instance) if not instance.addresses_known:
            return "its addresses cannot be read"
    return ""


def is_not_managed(snapshot: Snapshot) -> bool:
    """Report whether the Node belongs to another cloud or region."""
    return isinstance(snapshot.instance, NotManaged)


_IN_DOUBT = "its instance is absent from the list; a direct read did not confirm that"


def _decided(snapshot: Snapshot, settings: model.NodeSettings) -> list[Action]:
    """Return the actions of the reconciliations that follow each other immediately."""
    first = decide.decide(snapshot, settings)
    actions = [*first.actions]
    is_deleted = any(isinstance(action, model.DeleteNode) for action in actions)
    if first.requeue_after_s == 0 and not is_deleted:
        rest = dataclasses.replace(snapshot, topics=snapshot.topics - {Topic.LIVENESS})
        actions += decide.decide(rest, settings).actions
    return actions


def _is_in_doubt(
    snapshot: Snapshot, node: kube_nodes.Node, settings: model.NodeSettings
) -> bool:
    if not (
        settings.watches_lifecycle and settings.deletes and model.may_be_gone(node)
    ):
        return False
    if not node.spec.provider_id and snapshot.age_s < settings.unnamed_age_s:
        return False
    return isinstance(snapshot.instance, Absent) and snapshot.gone_for_s is None


def _row(node: kube_nodes.Node, planned: Action) -> Row | None:
    match planned:
        case model.RecordEvent(is_warning=False):
            return None
        case model.RecordEvent(reason=reason, message=message):
            action, why = NodeAction.RECORD_EVENT, f"{reason}: {message}"
        case model.HoldNodeBack(message):
            action, why = NodeAction.KEEP, message
        case model.DeleteNode():
            action, why = NodeAction.DELETE, _deletion(node)
        case model.SetAddresses(addresses):
            action, why = NodeAction.SET_ADDRESSES, _changed(node, addresses)
        case model.InitialiseNode(provider_id, labels):
            action, why = NodeAction.INITIALIZE, _initialization(provider_id, labels)
        case model.SetLabels(labels):
            action = NodeAction.SET_LABELS
            why = f"{_listed(labels)}, as in the older keys"
        case model.AddShutdownTaint():
            action = NodeAction.ADD_SHUTDOWN_TAINT
            why = "it is not Ready, and its instance is stopped"
        case model.RemoveShutdownTaint():
            action, why = NodeAction.REMOVE_SHUTDOWN_TAINT, "it is Ready again"
    return Row(node.name, action, why)


def _deletion(node: kube_nodes.Node) -> str:
    named = node.spec.provider_id or f"the name {node.name}"
    text = (
        f"it is not Ready, and the cloud has no instance with {named};"
        f" a second direct read after {model.NodeSettings().confirm_after_s:g} s must"
        " confirm it"
    )
    if model.is_confirmed(node):
        return f"{text}; {deletion_budget.CONFIRM_ANNOTATION} is set"
    return text


def _changed(node: kube_nodes.Node, addresses: tuple[Address, ...]) -> str:
    shown = ", ".join(f"{a.type} {a.address}" for a in node.status.addresses)
    desired = ", ".join(f"{a.type} {a.address}" for a in addresses)
    return f"observed: {shown or 'none'}; desired: {desired}"


def _initialization(
    provider_id: str | None, labels: tuple[tuple[str, str], ...]
) -> str:
    parts = [f"provider id {provider_id}"] if provider_id else []
    parts += [f"labels {_listed(labels)}"] if labels else []
    return "; ".join(["its instance exists", *parts])


def _listed(labels: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels)
