"""What a Node needs next: pure, snapshot in, outcome out."""

from lib.cloud import errors
from lib.cloud.model import Absent, Foreign, Instance, Phase, Seen, Unknown
from lib.nodes import addresses, labels, model
from lib.nodes.model import Action, Snapshot, Topic
from lib.reconcile.outcome import Outcome

HELD_S = 0.2
"""How soon to look whether the watch has brought our own write back."""
POLL_S = 5.0
"""How soon to look again for an instance: one shared read serves all Nodes."""
SETTLING_S = 10.0
"""How soon to look for the addresses of a Node that got none so far."""

_RETRY_S = {
    errors.Retry.SHORT: 1.0,
    errors.Retry.FACT: POLL_S,
    errors.Retry.BACKOFF: POLL_S,
    errors.Retry.SLOW: 60.0,
    errors.Retry.NEVER: 60.0,
}

Decided = Outcome[Action]


def decide(seen: Snapshot, settings: model.Settings) -> Decided:
    """Say what brings the Node one step closer to its instance.

    Pure. At most one of the branches acts in a pass; Foreign instances are left
    alone in each of them.
    """
    if seen.held:
        return Outcome(requeue_after_s=HELD_S)
    if seen.node is None or isinstance(seen.instance, Foreign):
        return Outcome()
    if settings.watches_lifecycle and Topic.LIVENESS in seen.topics:
        outcome = _liveness(seen, seen.node, settings)
        if outcome.actions:
            return outcome
    if not settings.initialises:
        return Outcome()
    is_new = seen.node.has_taint(model.UNINITIALIZED_TAINT)
    return (_initialise if is_new else _keep)(seen, seen.node)


def _liveness(seen: Snapshot, node: model.Node, settings: model.Settings) -> Decided:
    shut = node.has_taint(model.SHUTDOWN_TAINT)
    if node.is_ready:
        return Outcome(actions=(model.RemoveShutdownTaint(),) if shut else ())
    match seen.instance:
        case Absent():
            return _gone(seen, node, settings)
        case Seen(Instance(phase=Phase.STOPPED)) if not shut:
            return Outcome(actions=(model.AddShutdownTaint(),))
    return Outcome()


def _gone(seen: Snapshot, node: model.Node, settings: model.Settings) -> Decided:
    confirmed = seen.gone_for_s is not None
    if not confirmed or (seen.gone_for_s or 0.0) < settings.confirm_after_s:
        return Outcome()
    if not settings.deletes:
        return Outcome()
    message = (
        f"Deleting node {node.name} because it does not exist in the cloud provider"
    )
    event = model.RecordEvent(model.Source.LIFECYCLE, False, "DeletingNode", message)
    return Outcome(actions=(event, model.DeleteNode()))


def _initialise(seen: Snapshot, node: model.Node) -> Decided:
    match seen.instance:
        case Seen(value=instance):
            return _initialise_from(node, instance)
        case Unknown(error=error):
            event = _warning(error.reason, str(error))
            return Outcome((event,), error.retry_after_s or _RETRY_S[error.retry])
        case Absent():
            return Outcome(requeue_after_s=POLL_S)
    return Outcome()


def _initialise_from(node: model.Node, instance: Instance) -> Decided:
    if not instance.addresses_known:
        return Outcome(requeue_after_s=POLL_S)
    if instance.instance_type is None:
        text = "the instance's type can't be told: its flavor is gone or can't be read"
        return Outcome((_warning("InstanceTypeUnknown", text),), _RETRY_S[_SLOW])
    try:
        wanted = addresses.wanted(node, instance.addresses)
    except addresses.ProvidedIpError as error:
        return Outcome((_warning("ProvidedNodeIPUnknown", str(error)),), POLL_S)
    actions: list[Action] = []
    if wanted and not addresses.are_shown(node, wanted):
        actions.append(model.SetAddresses(wanted))
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
    return Outcome(tuple(actions), None if wanted else SETTLING_S)


def _keep(seen: Snapshot, node: model.Node) -> Decided:
    actions: list[Action] = []
    if changed := labels.to_reconcile(node.metadata.labels):
        actions.append(model.SetLabels(changed))
    match seen.instance:
        case Seen(value=instance):
            try:
                wanted = addresses.wanted(node, instance.addresses)
            except addresses.ProvidedIpError as error:
                return Outcome(
                    (*actions, _warning("ProvidedNodeIPUnknown", str(error)))
                )
            if wanted and not addresses.are_shown(node, wanted):
                actions.append(model.SetAddresses(wanted))
            waits = not node.has_ip and not wanted
            return Outcome(tuple(actions), SETTLING_S if waits else None)
    return Outcome(tuple(actions))


_SLOW = errors.Retry.SLOW


def _warning(reason: str, message: str) -> model.RecordEvent:
    return model.RecordEvent(model.Source.NODE, True, reason, message)
