"""Describes a plan of this package: objects of each step, old and new values. Pure."""

from lib.cloud.dvp.load_balancers import observed_service, service_plan
from lib.cloud.explained import Explanation, Touched
from lib.cloud.load_balancers import Observed, Plan, Target


def explain(target: Target, observed: Observed, plan: Plan) -> Explanation:
    """See `lib.cloud.explained.Explain`."""
    del target
    native = observed_service.of(observed)
    touched = tuple(
        Touched(step.path, step.verb, service_plan.of(step).changes, step.why)
        for step in plan.steps
    )
    is_done = bool(plan.steps) or plan.settled
    return Explanation(
        _shown(native), "" if is_done else _waits_for(native), touched=touched
    )


def _shown(native: observed_service.ParentObjects) -> str:
    main = native.main
    if main is None:
        return ""
    kind, service = main
    addresses = ", ".join(row.ip or row.hostname for row in native.ingress)
    return f"{kind.resource.kind} {service.metadata.name}, {addresses or 'no address'}"


def _waits_for(native: observed_service.ParentObjects) -> str:
    for kind, service in native.all:
        name = f"{kind.resource.kind} {service.metadata.name} of the parent"
        if service.metadata.deletion_timestamp is not None:
            return f"{name} is being deleted"
        return f"{name} has no address yet"
    return ""
