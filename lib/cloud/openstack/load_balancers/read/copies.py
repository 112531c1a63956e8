"""Reports about Services that were copied, or restored into a new cluster.

Their annotations were written for another Service, by openstack-ccm, not by a user.
"""

from lib.cloud import errors
from lib.cloud.load_balancers import Reason, Ref
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import Problem


def problem(ref: Ref, id_: str) -> Problem:
    """Report that a Service has annotations about another one's load balancer."""
    message = (
        f"load balancer {id_}, which annotations {keys.LOAD_BALANCER_ID} and"
        f" {keys.OWNED_ID} name, has the ownership tag of another Service, so the"
        " Service was copied or restored: it gets a load balancer of its own; to have"
        " it take the other one over, with its address, run"
        f" `mooring adopt load-balancer {id_} --service {ref.key}`"
    )
    return Problem(Reason.NOT_OWNED, message)


def of_other_project(error: errors.Forbidden) -> errors.Forbidden:
    """Return the error with what to do about a Service that was copied."""
    advice = (
        f"{error.message}; if the Service was copied or restored from another cluster,"
        f" remove annotations {keys.OWNED_ID}, {keys.LOAD_BALANCER_ID} and"
        f" {keys.LOAD_BALANCER_ADDRESS}"
    )
    return errors.Forbidden(
        advice,
        operation=error.operation,
        resource=error.resource,
        request_id=error.request_id,
    )
