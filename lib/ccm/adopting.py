"""Takes a load balancer over for a Service: for `mooring adopt load-balancer`."""

import dataclasses
import json
from collections.abc import Callable, Iterator

from lib.balancers import translate
from lib.balancers.model import Service
from lib.ccm import cluster_id
from lib.cloud import errors
from lib.cloud.load_balancers import Adopting, Adoption, LoadBalancers, Ref
from lib.cloud.model import Unknown
from lib.cloud.steps import Asked, GateState
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube import store as stores
from lib.process import decoding

TIMEOUT_S = 10.0
WAIT_S = 300.0
"""For one change of the cloud."""
POLL_S = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class AdoptionRequest:
    """Load balancer to adopt. service: "namespace/name". cluster_id: the daemon's."""

    id: str
    service: str
    cluster_id: str = ""
    cluster_name: str = "kubernetes"


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    """An adoption that was read, and for whom."""

    request: AdoptionRequest
    service: Service
    ref: Ref
    adoption: Adoption


def plan(
    api: client.Api, balancers: LoadBalancers, request: AdoptionRequest
) -> Planned:
    """Read what the adoption changes; nothing is written.

    Raises:
        InvalidRequest: the load balancer is that of a Service that exists, serves
        several, or is not ACTIVE.
        Unsupported: the cloud has no adoption. CloudError, KubeError: as its reads.
    """
    operation = "adopt load balancer"
    if not isinstance(balancers, Adopting):
        text = "this cloud has no ownership tags that could be set"
        raise errors.Unsupported(text, operation=operation)
    cluster = cluster_id.read(api, request.cluster_id, request.cluster_name)
    kept = stores.Store(api, resources.SERVICES, Service)
    kept.relist()
    service = kept.get(request.service)
    if service is None or not service.is_desired:
        text = "there is no such Service of type LoadBalancer without a class"
        raise errors.InvalidRequest(
            text, operation="find Service", resource=request.service
        )
    ref = balancers.refer(translate.of(service, (), cluster))
    adoption = balancers.adoption(ref, request.id)
    for other in kept.items().values():
        if f"{cluster.id}:{other.metadata.uid}" in adoption.owners:
            text = f"it is owned by Service {other.key}, which exists"
            raise errors.InvalidRequest(text, operation=operation, resource=request.id)
    if adoption.obstacle:
        raise errors.InvalidRequest(
            adoption.obstacle, operation=operation, resource=request.id
        )
    return Planned(request, service, ref, adoption)


def carry_out(
    api: client.Api,
    balancers: LoadBalancers,
    planned: Planned,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[str]:
    """Apply the steps, then write the annotations; yield what was done.

    May be interrupted and repeated: the tag of the load balancer is set last.

    Raises:
        CloudError, KubeError: a write failed.
    """
    for step in planned.adoption.steps:
        balancers.apply(step)
        yield str(step)
        if step.is_gated:
            _wait(balancers, planned.request.id, clock, sleep)
    about = planned.service.metadata
    notes = dict(planned.adoption.annotations)
    body = {"metadata": {"uid": about.uid, "annotations": notes}}
    answer = api.patch(
        resources.SERVICES,
        about.name,
        json.dumps(body).encode(),
        about.namespace,
        content_type=client.MERGE_PATCH,
        timeout_s=TIMEOUT_S,
    )
    decoding.decode(answer, Service)
    yield f"annotate Service {planned.service.key}: {', '.join(sorted(notes))}"


def _wait(
    balancers: LoadBalancers,
    id_: str,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Wait until the load balancer takes the next write.

    Raises:
        CloudError: it cannot be read, was deleted, or is busy for too long.
    """
    began = clock()
    while clock() - began < WAIT_S:
        sleep(POLL_S)
        gate = balancers.gates({Asked(id_, clock() - began)})[id_]
        if isinstance(gate, Unknown):
            raise gate.error
        if gate.state is GateState.OPEN:
            return
        if gate.state is GateState.LOST:
            break
    text = f"it is not ACTIVE {WAIT_S:.0f} s after a change, or was deleted"
    raise errors.Unavailable(text, operation="adopt load balancer", resource=id_)


KNOWN = (errors.CloudError, kube_errors.KubeError)
"""What a caller reports in one line."""
