"""What a reconciliation of the table would do, row by row: pure."""

import dataclasses
import enum
from collections.abc import Iterator, Mapping

from lib.cloud import errors, route_records
from lib.cloud.routes import Plan
from lib.cloud.steps import Verb
from lib.kube.nodes import Node
from lib.plans.model import ApplyStep
from lib.routes import decide, model
from lib.routes.model import Desired, TableSnapshot


class RouteAction(enum.StrEnum):
    """Action of a reconciliation of routes, as `mooring plan routes` shows it."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    WRITE_RECORD = "write record"
    SET_CONDITION = "set condition"
    PROBLEM = "problem"
    """No action: an Event would report it."""


@dataclasses.dataclass(frozen=True, slots=True)
class RoutesRow:
    """One write, or one problem.

    subject: router, port, ConfigMap or Node. reason: one sentence.
    """

    subject: str
    action: RouteAction
    reason: str


_ACTIONS = {
    Verb.CREATE: RouteAction.CREATE,
    Verb.CHANGE: RouteAction.CHANGE,
    Verb.DELETE: RouteAction.DELETE,
}


def rows(
    snapshot: TableSnapshot, nodes: Mapping[str, Node], *, has_conditions: bool
) -> Iterator[RoutesRow]:
    """Return what would be done, in its order, and then what is wrong.

    has_conditions: the Nodes' condition is kept as well.
    """
    plan = snapshot.plan
    if plan is None:
        return
    is_fatal = any(problem.is_fatal for problem in plan.problems)
    outcome = decide.table(snapshot)
    for action in outcome.actions if not is_fatal else ():
        match action:
            case model.WriteRecord(_, part):
                name = f"ConfigMap {route_records.NAMESPACE}/{route_records.name(part)}"
                yield RoutesRow(name, RouteAction.WRITE_RECORD, "")
            case model.Publish():
                for step in plan.entry_steps.values():
                    yield RoutesRow(step.path[0], _ACTIONS[step.verb], step.why)
            case ApplyStep(step):
                yield RoutesRow(step.path[0], _ACTIONS[step.verb], step.why)
    if has_conditions and not is_fatal:
        yield from _conditions(snapshot.desired, plan, nodes)
    yield from _problems(snapshot.desired, plan)


def _conditions(
    desired: Desired, plan: Plan, nodes: Mapping[str, Node]
) -> Iterator[RoutesRow]:
    """Return the conditions that would be written once all entries are."""
    unserved, served = desired.unserved_by(plan), desired.served_by(plan)
    for name, node in sorted(nodes.items()):
        if name in served or name in unserved:
            condition = model.SetCondition(name in served)
            if decide.differs(node, condition):
                text = f"{model.CONDITION} {condition.status}, {condition.reason}"
                yield RoutesRow(f"Node {name}", RouteAction.SET_CONDITION, text)


def _problems(desired: Desired, plan: Plan) -> Iterator[RoutesRow]:
    by_subject = {"table": plan.problems}
    for name in desired.present:
        by_subject[f"Node {name}"] = desired.problems_by(plan, name)
    for subject, problems in by_subject.items():
        for problem in problems:
            text = f"{problem.reason}: {problem.message}"
            yield RoutesRow(subject, RouteAction.PROBLEM, text)


def unread(snapshot: TableSnapshot) -> str:
    """Return why the table could not be read; empty if it was."""
    error = snapshot.error
    if error is None:
        return ""
    return error.summary if isinstance(error, errors.CloudError) else str(error)
