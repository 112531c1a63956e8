"""Next actions for a Node: pure, from a snapshot to an outcome."""

from lib.cloud import errors
from lib.cloud.model import Absent, Instance, NotManaged, Phase, Seen, Unknown
from lib.kube import nodes as kube_nodes
from lib.nodes import addresses, deletion_budget, labels, model
from lib.nodes.model import Action, Snapshot, Topic
from lib.reconcile.failure import SLOW_S
from lib.reconcile.outcome import Outcome

SOONEST_S = 0.2
"""The shortest wait for the second confirmation of an absence."""
POLL_S = 5.0
POLL_MAX_S = 300.0
POLL_PER_AGE = 1 / 12
"""Requeue delay of a Node that waits for its instance or its addresses: POLL_S for a
new Node, then this share of its age, at most POLL_MAX_S."""
LATE_S = 30.0
"""From this age of a Node on, an Event reports that its instance is not found."""
NO_ADDRESS_S = 300.0
"""The same where the instance has no address."""

_RETRY_S = {
    errors.Retry.SHORT: 1.0,
    errors.Retry.FACT: POLL_S,
    errors.Retry.BACKOFF: POLL_S,
    errors.Retry.SLOW: SLOW_S,
    errors.Retry.NEVER: SLOW_S,
}

_ELSEWHERE = (
    "Not deleting the node yet, although the cloud does not show its instance: no"
    " instance of this cluster was observed since the process started, so the"
    " credentials may lead to another project. Check the cloud; annotate the node with"
    f" {deletion_budget.CONFIRM_ANNOTATION} to have it deleted"
)
Decided = Outcome[Action]


def decide(snapshot: Snapshot, settings: model.NodeSettings) -> Decided:
    """Return what brings the Node one step closer to its instance.

    Pure. At most one of the branches acts in a reconciliation; each skips a Node whose
    instance is NotManaged.
    """
    if snapshot.node is None:
        return Outcome()
    if isinstance(snapshot.instance, NotManaged):
        return _not_managed(snapshot, snapshot.node, snapshot.instance)
    if settings.watches_lifecycle and Topic.LIVENESS in snapshot.topics:
        outcome = _liveness(snapshot, snapshot.node, settings)
        if outcome.actions and snapshot.topics != {Topic.LIVENESS}:
            return Outcome(outcome.actions, 0.0)  # the other topics come next
        if outcome.actions or outcome.requeue_after_s is not None:
            return outcome
    if not settings.initialises:
        return Outcome()
    is_new = snapshot.node.has_taint(kube_nodes.UNINITIALIZED_TAINT)
    return (_initialise if is_new else _keep)(snapshot, snapshot.node)


def _not_managed(
    snapshot: Snapshot, node: kube_nodes.Node, instance: NotManaged
) -> Decided:
    """Skip the Node; an Event reports why if it waits for its initialisation."""
    waits = (
        node.has_taint(kube_nodes.UNINITIALIZED_TAINT) and Topic.SYNC in snapshot.topics
    )
    if not waits:
        return Outcome()
    # Another cloud controller manager may initialise it; the cloud is not read again.
    return Outcome((_warning("ProviderMismatch", instance.reason),), POLL_MAX_S)


def _poll_s(snapshot: Snapshot) -> float:
    return min(POLL_MAX_S, max(POLL_S, snapshot.age_s * POLL_PER_AGE))


def _liveness(
    snapshot: Snapshot, node: kube_nodes.Node, settings: model.NodeSettings
) -> Decided:
    shut = node.has_taint(kube_nodes.SHUTDOWN_TAINT)
    if node.is_ready:
        return Outcome(actions=(model.RemoveShutdownTaint(),) if shut else ())
    match snapshot.instance:
        case Absent() if snapshot.deleting_for_s is not None:
            is_late = snapshot.deleting_for_s >= model.FINALIZED_BY_S
            is_reported = settings.deletes and is_late
            return Outcome((_waits_for_finalizers(node),) if is_reported else ())
        case Absent():
            return _gone(snapshot, node, settings)
        case Seen(Instance(phase=Phase.STOPPED)) if not shut:
            return Outcome(actions=(model.AddShutdownTaint(),))
        case Seen(Instance(phase=Phase.RUNNING)) if shut:
            # The Pods of its network may be needed to become Ready.
            return Outcome(actions=(model.RemoveShutdownTaint(),))
    return Outcome()


def _gone(
    snapshot: Snapshot, node: kube_nodes.Node, settings: model.NodeSettings
) -> Decided:
    if not settings.deletes or not model.may_be_gone(node):
        return Outcome()
    # With a clock that is ahead, a Node that has just joined is not deleted.
    sure_age_s = min(snapshot.age_s, snapshot.known_for_s)
    if not node.spec.provider_id and sure_age_s < settings.unnamed_age_s:
        return Outcome()
    uid = node.metadata.uid
    if not model.is_confirmed(node) and deletion_budget.suspends(
        snapshot.budget, settings.limit, uid
    ):
        is_elsewhere = snapshot.budget.is_elsewhere
        text = _ELSEWHERE if is_elsewhere else _held_back(settings.limit)
        held = model.HoldNodeBack(text)
        return Outcome(() if snapshot.was_reported else (held,))
    if snapshot.gone_for_s is None:
        return Outcome()
    if (left_s := settings.confirm_after_s - snapshot.gone_for_s) > 0:
        return Outcome(requeue_after_s=max(left_s, SOONEST_S))
    message = (
        f"Deleting node {node.name} because it does not exist in the cloud provider"
    )
    event = model.RecordEvent(model.Source.LIFECYCLE, False, "DeletingNode", message)
    return Outcome(actions=(event, model.DeleteNode()))


def _waits_for_finalizers(node: kube_nodes.Node) -> model.RecordEvent:
    """Return the same text each time, so that the Event is counted up."""
    message = (
        "The node is being deleted and does not exist in the cloud provider, but waits"
        f" for the finalizers {', '.join(node.metadata.finalizers)}: check the"
        " controllers that set them"
    )
    return model.RecordEvent(model.Source.LIFECYCLE, True, "NodeDeletionWaits", message)


def _held_back(limit: deletion_budget.Limit) -> str:
    """Return the same text each time, so that the Event is counted up."""
    return (
        "Not deleting the node yet, although the cloud does not show its instance: at"
        f" most {limit.count} nodes, or {limit.percent}% of all if that is more, are"
        f" deleted within {limit.window_s:g}s, and none while more than"
        f" {deletion_budget.UNHEALTHY_PERCENT}% are absent. Check the cloud; annotate"
        f" the node with {deletion_budget.CONFIRM_ANNOTATION} to have it deleted"
    )


def _initialise(snapshot: Snapshot, node: kube_nodes.Node) -> Decided:
    match snapshot.instance:
        case Seen(value=instance):
            return _initialise_from(snapshot, node, instance)
        case Unknown(error=error):
            event = _warning(error.reason, error.advice)
            pause_s = max(error.retry_after_s or 0.0, _RETRY_S[error.retry])
            return Outcome((event,), pause_s)
        case Absent(by_id=by_id):
            named = node.spec.provider_id if by_id else f"the name {node.name}"
            text = f"the cloud has no instance with {named}"
            is_late = snapshot.age_s >= LATE_S
            events = (_warning("InstanceNotFound", text),) if is_late else ()
            return Outcome(events, _poll_s(snapshot))
    return Outcome()


def _initialise_from(
    snapshot: Snapshot, node: kube_nodes.Node, instance: Instance
) -> Decided:
    if not instance.addresses_known:
        return _without_addresses(snapshot, instance)
    if instance.instance_type is None:
        text = f"the instance's type is unknown: {instance.type_problem}"
        return Outcome(
            (_warning("InstanceTypeUnknown", text),), _RETRY_S[errors.Retry.SLOW]
        )
    try:
        desired = addresses.desired(node, instance.addresses)
    except addresses.ProvidedIpError as error:
        return Outcome(
            (_warning("ProvidedNodeIPUnknown", str(error)),), _poll_s(snapshot)
        )
    actions: list[Action] = [*_without_address(instance)]
    if desired and not addresses.are_shown(node, desired):
        actions.append(model.SetAddresses(desired))
    actions.append(
        model.InitialiseNode(
            None if node.spec.provider_id else instance.provider_id,
            labels.for_instance(instance, node.metadata.labels),
        )
    )
    actions.append(
        model.RecordEvent(
            model.Source.NODE, False, "Synced", "Node synced successfully"
        )
    )
    return Outcome(tuple(actions), None if desired else _poll_s(snapshot))


def _without_addresses(snapshot: Snapshot, instance: Instance) -> Decided:
    """Wait for addresses; an Event reports why the cloud has none."""
    problem = instance.no_addresses_reason
    if not problem:
        return Outcome(requeue_after_s=POLL_S)
    is_late = snapshot.age_s >= NO_ADDRESS_S
    text = f"the instance's addresses are unknown: {problem}"
    events = (_warning("AddressesUnknown", text),) if is_late else ()
    return Outcome(events, _poll_s(snapshot))


def _keep(snapshot: Snapshot, node: kube_nodes.Node) -> Decided:
    actions: list[Action] = []
    if changed := labels.to_reconcile(node.metadata.labels):
        actions.append(model.SetLabels(changed))
    match snapshot.instance:
        case Seen(value=instance):
            try:
                desired = addresses.desired(node, instance.addresses)
            except addresses.ProvidedIpError as error:
                return Outcome(
                    (*actions, _warning("ProvidedNodeIPUnknown", str(error)))
                )
            actions += _without_address(instance)
            if desired and not addresses.are_shown(node, desired):
                actions.append(model.SetAddresses(desired))
            waits = not node.has_ip and not desired
            return Outcome(tuple(actions), _poll_s(snapshot) if waits else None)
    return Outcome(tuple(actions))


def _without_address(instance: Instance) -> tuple[model.RecordEvent, ...]:
    """Report that the configuration of the cloud leaves an instance no address."""
    problem = instance.address_problem
    return (_warning("NodeAddressMissing", problem),) if problem else ()


def _warning(reason: str, message: str) -> model.RecordEvent:
    return model.RecordEvent(model.Source.NODE, True, reason, message)
