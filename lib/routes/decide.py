"""What the table, an entry or a Node needs next: pure, snapshot in, outcome out."""

from collections.abc import Iterable, Iterator

from lib.cloud import errors, route_records, routes
from lib.cloud.routes import Reason, Record
from lib.cloud.steps import Problem
from lib.kube import errors as kube_errors
from lib.kube.nodes import Node
from lib.plans import model as plans
from lib.reconcile.outcome import Outcome
from lib.routes import model
from lib.routes.model import NODE, TABLE, Action, NodeSnapshot, TableSnapshot

Decided = Outcome[Action]


def decide(snapshot: model.Snapshot) -> Decided:
    """Return the actions for one key."""
    match snapshot:
        case model.TableSnapshot():
            return table(snapshot)
        case model.EntrySnapshot(_, action):
            return Outcome((action,))
        case model.NodeSnapshot():
            return node(snapshot)


def node(snapshot: NodeSnapshot) -> Decided:
    """Return the condition to be written, if it is another than the Node has."""
    condition = model.SetCondition(snapshot.is_served)
    return Outcome((condition,) if differs(snapshot.node, condition) else ())


def differs(node: Node, condition: model.SetCondition) -> bool:
    """Report whether a Node has another status or reason of the condition."""
    return not any(
        (c.type, c.status, c.reason)
        == (model.CONDITION, condition.status, condition.reason)
        for c in node.conditions
    )


def table(snapshot: TableSnapshot) -> Decided:
    """Return what brings the table closer, in the order in which a kill is safe.

    Recorded before it is created; created before its predecessor is removed; removed
    from the cloud before it is removed from the record.
    """
    error = snapshot.error
    if isinstance(error, errors.Unsupported):
        return Outcome((model.Disable(error.summary),))
    if error is not None:
        return _unavailable(snapshot, error)
    plan = snapshot.plan
    if plan is None:
        return Outcome()
    problems = (*plan.problems, *_unreadable(snapshot))
    actions: list[Action] = [*_report(snapshot, TABLE, problems)]
    if any(problem.is_fatal for problem in plan.problems):
        return Outcome(tuple(actions))
    actions += _records(snapshot, snapshot.record, plan)
    actions += plans.next_steps(plan.steps, "")
    actions.append(model.Publish(plan, snapshot.desired))
    actions += plans.next_steps(plan.removals, "")
    actions += _by_node(snapshot, plan)
    if plan.settled:
        actions += _former(snapshot)
    return Outcome(tuple(actions), plan.retry_after_s)


def _unavailable(snapshot: TableSnapshot, error: Exception) -> Decided:
    """Return the outcome of a table that cannot be read: no condition is changed."""
    message = "the routes cannot be read: the cloud does not answer; the log has more"
    if isinstance(error, errors.CloudError) and not _passes(error):
        message = error.advice
    elif isinstance(error, kube_errors.KubeError):
        name = f"ConfigMap {route_records.KEY}"
        message = f"failed to read {name}, the record of routes: {error.message}"
    problem = Problem(Reason.TABLE_UNAVAILABLE, message, is_fatal=True)
    return Outcome(_report(snapshot, TABLE, (problem,)), failure=error)


def _passes(error: errors.CloudError) -> bool:
    """Report whether an error ends by itself; its text may differ each time."""
    return isinstance(error, errors.Unavailable | errors.Busy)


def _unreadable(snapshot: TableSnapshot) -> Iterator[Problem]:
    """Report records that were edited by hand, as long as their text is kept."""
    for part, key in snapshot.unreadable:
        name = f"{route_records.NAMESPACE}/{route_records.name(part)}"
        message = (
            f"ConfigMap {name}: {key}: not as it was written: nothing in"
            " it is removed; delete the key once it was looked through"
        )
        yield Problem(Reason.RECORD_UNREADABLE, message)


def _records(
    snapshot: TableSnapshot,
    record: Record | None,
    plan: routes.Plan,
    *,
    is_former: bool = False,
) -> Iterator[Action]:
    """Return the writes of a record that changes; an unreadable text is kept.

    The key that shows the split comes before the parts, and the first part, which
    has held all of it, comes last: so a kill leaves no entry without a record.
    """
    if plan.record is None or record is None:
        return
    key, first = route_records.key(record), snapshot.stored.part(0).data
    is_over = is_former and not plan.record.entries
    text = route_records.written(plan.record)
    is_split = route_records.is_split(record, first)
    is_short = len(text) <= route_records.SPLIT_BYTES
    if not is_split and (is_short or not snapshot.stored.may_split):
        yield from _text(snapshot, 0, record, None if is_over else text)
        return
    split_key = f"{key}{route_records.SPLIT}"
    if not is_split:
        yield model.WriteRecord(((split_key, str(route_records.PARTS)),))
    numbered = list(
        enumerate(map(route_records.written, route_records.shares(plan.record)))
    )
    for part, share in (*numbered[1:], numbered[0]):
        yield from _text(snapshot, part, record, None if is_over else share)
    if is_over:
        yield model.WriteRecord(((split_key, None),))


def _text(
    snapshot: TableSnapshot, part: int, record: Record, text: str | None
) -> Iterator[Action]:
    """Return the write of the text of a record in a part, if it is another one."""
    key = route_records.key(record)
    old = snapshot.stored.text(part, key)
    if old == text:
        return
    changes = [(key, text)]
    if old is not None and not record.is_readable:
        stored = route_records.of_text(record.table, record.cluster_id, old)
        if not stored.is_readable:
            changes.append((f"{key}{route_records.UNREADABLE}", old))
    yield model.WriteRecord(tuple(changes), part)


def _former(snapshot: TableSnapshot) -> Iterator[Action]:
    """Return what empties a table that is configured no longer, one at a time."""
    for record, plan in snapshot.former:
        steps = (*plan.steps, *plan.entry_steps.values(), *plan.removals)
        if steps:
            yield from plans.next_steps(steps, "")
        else:
            yield from _records(snapshot, record, plan, is_former=True)
        if steps or plan.record is not None:
            return


def _by_node(snapshot: TableSnapshot, plan: routes.Plan) -> Iterator[Action]:
    desired = snapshot.desired
    unserved = desired.unserved_by(plan)
    for name in desired.present:
        problems = desired.problems_by(plan, name)
        yield from _report(
            snapshot, f"{NODE}{name}", problems, is_unserved=name in unserved
        )


def _report(
    snapshot: TableSnapshot,
    subject: str,
    problems: Iterable[Problem],
    *,
    is_unserved: bool = False,
) -> tuple[Action, ...]:
    """Return the report of what is wrong: if that is new, and again when it is due."""
    now = tuple(problems)
    if now == snapshot.reported.get(subject, ()) and subject not in snapshot.due:
        return ()
    return (model.ReportProblems(subject, now, is_unserved),)
