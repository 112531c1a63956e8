"""What brings a Service's load balancer about: pure.

Rules: a plan ends where the next step needs an answer. Nothing is planned for a load
balancer that Octavia is at. What is not ours is never touched.
"""

import dataclasses

from lib.cloud.load_balancers import (
    Ingress,
    IpMode,
    Notice,
    NoticeType,
    Observed,
    Plan,
    Problem,
    Reason,
    Ref,
    Results,
    Step,
    Target,
)
from lib.cloud.openstack import settings
from lib.cloud.openstack.load_balancers import annotations as keys
from lib.cloud.openstack.load_balancers import (
    creation,
    deletion,
    floating,
    groups,
    identity,
    names,
    requests,
    tree,
)
from lib.cloud.openstack.load_balancers.bodies import Context
from lib.cloud.openstack.load_balancers.floating import Reached
from lib.cloud.openstack.load_balancers.lists import quoted
from lib.cloud.openstack.load_balancers.native import ACTIVE, ERROR, LoadBalancer
from lib.cloud.openstack.load_balancers.observe import wanted_of
from lib.cloud.openstack.load_balancers.observed import (
    Features,
    Relation,
    Tree,
)
from lib.cloud.openstack.load_balancers.wanted import (
    Monitored,
    OnError,
    Proxy,
    Wanted,
)

POLL_S = 2.0
"""When a load balancer that Octavia is at is worth another look."""


def plan(target: Target, observed: Observed, config: settings.LoadBalancer) -> Plan:
    """See the protocol."""
    seen = observed.native
    if not isinstance(seen, Tree):
        raise TypeError("the observation is of another room")
    wanted = wanted_of(target)
    if wanted is None or target.spec is None:
        return deletion.plan(target.ref, seen, config)
    made = _wanted(target.ref, wanted, seen, config)
    known = target.spec.problems
    return dataclasses.replace(
        made,
        problems=(*known, *made.problems),
        notices=(
            *wanted.notices,
            *_ignored(target.ref, wanted, seen, config),
            *made.notices,
        ),
    )


def _wanted(
    ref: Ref, wanted: Wanted, seen: Tree, config: settings.LoadBalancer
) -> Plan:
    found = seen.identity
    problems = [*((found.problem,) if found.problem else ()), *seen.around.problems]
    if any(problem.is_fatal for problem in problems):
        return Plan(problems=tuple(problems))
    if found.load_balancer is None:
        made = _new(ref, wanted, seen, config)
    elif found.load_balancer.provisioning_status == ACTIVE:
        made = _active(ref, wanted, found.load_balancer, seen, config)
    else:
        made = _not_active(ref, wanted, found.load_balancer, seen, config)
    spares = tuple(
        deletion.spare(one)
        for one in found.duplicates
        if one.provisioning_status in (ACTIVE, ERROR)
    )
    return dataclasses.replace(
        made,
        steps=(*made.steps, *spares),
        settled=made.settled and not spares,
        problems=(*problems, *made.problems),
    )


def context_of(
    ref: Ref, wanted: Wanted, seen: Tree, owner: str, *, monitors: bool
) -> Context:
    """Gather what all requests for this Service have in common."""
    tags = (owner, names.mark(ref)) if seen.features.tags else ()
    place = wanted.placement
    member_subnet_id = place.member_subnet_id or seen.around.node_subnet_id
    return Context(wanted, seen.features, owner, tags, member_subnet_id, monitors)


def _new(ref: Ref, wanted: Wanted, seen: Tree, config: settings.LoadBalancer) -> Plan:
    source = seen.around.source
    if source.problem is not None:
        return Plan(problems=(source.problem,))
    monitors = wanted.monitored is not Monitored.NO
    owner = creation.name_of(ref, seen)
    context = context_of(ref, wanted, seen, owner, monitors=monitors)
    notices, problems = creation.remarks(ref, wanted, seen)
    if seen.identity.was_lost:
        message = (
            "the Service's load balancer was deleted by somebody; it is made again"
        )
        problems = (*problems, Problem(Reason.DRIFT, message))
    problems = (*problems, *_health(wanted, context))
    steps = (creation.step(ref, context, seen, config),)
    return Plan(steps, retry_after_s=POLL_S, notices=notices, problems=problems)


def _not_active(
    ref: Ref,
    wanted: Wanted,
    balancer: LoadBalancer,
    seen: Tree,
    config: settings.LoadBalancer,
) -> Plan:
    """Wait for one in flux; one in ERROR is made again if it never was usable."""
    results = Results(annotations=_annotations(balancer, seen.identity.relation))
    if balancer.provisioning_status != ERROR:
        return Plan(retry_after_s=POLL_S, results=results)
    is_own = deletion.is_whole_ours(ref, seen)
    was_usable = bool(
        identity.addresses(balancer, seen.around.floating_ips)
        & set(identity.hints_of(ref).addresses)
    )
    message = f"load balancer {balancer.id} is in status ERROR"
    path = (f"load balancer {balancer.name}",)
    steps: tuple[Step, ...] = ()
    if is_own and not was_usable:
        message += " and never was usable; it is deleted and made again"
        steps = (_delete(path, balancer, "it is in ERROR and never was usable"),)
    elif is_own and wanted.on_error is OnError.RECREATE:
        message += f"; it is deleted and made again, as {keys.ON_ERROR} says"
        steps = (_delete(path, balancer, "it is in ERROR"),)
    elif is_own and wanted.on_error is OnError.FAILOVER:
        message += f"; it fails over, as {keys.ON_ERROR} says"
        steps = (requests.fail_over(path, "it is in ERROR", balancer.id),)
    problem = Problem(Reason.IN_ERROR, message)
    return Plan(
        steps,
        retry_after_s=None if steps else ERROR_POLL_S,
        backs_off=bool(steps),
        results=results,
        problems=(problem,),
    )


ERROR_POLL_S = 60.0
"""When one in ERROR that we leave alone is looked at again."""


def _delete(path: tuple[str, ...], balancer: LoadBalancer, why: str) -> Step:
    """Delete one in ERROR; its floating IP stays for the next one."""
    return requests.delete_balancer(
        path, why, balancer.id, cascades=True, is_gated=False
    )


def _active(
    ref: Ref,
    wanted: Wanted,
    balancer: LoadBalancer,
    seen: Tree,
    config: settings.LoadBalancer,
) -> Plan:
    relation = seen.identity.relation
    children = seen.children
    if children is None:
        return Plan(retry_after_s=POLL_S)
    if relation is Relation.SHARED:
        refusal = _may_share(ref, wanted, balancer, seen.features, config)
        if refusal:
            return Plan(problems=refusal)
    owner = balancer.name if relation is Relation.OWNED else names.load_balancer(ref)
    monitors = _monitors(wanted, balancer)
    context = context_of(ref, wanted, seen, owner, monitors=monitors)
    place = tree.Place(ref, balancer, relation, children)
    taken = tree.conflicts(place, context)
    if taken:
        return Plan(problems=taken)
    reached = floating.reach(ref, wanted, balancer, relation, seen.around)
    steps = (*_tags(ref, context, place), *tree.steps(place, context), *reached.steps)
    more, problems = _groups(ref, wanted, seen, config)
    all_steps = (*steps, *more)
    problems = (
        *reached.problems,
        *problems,
        *_health(wanted, context),
        *_unchangeable(wanted, balancer, relation, seen.features),
    )
    return Plan(
        steps=all_steps,
        settled=not all_steps,
        retry_after_s=POLL_S if all_steps else None,
        results=_results(wanted, balancer, relation, reached, config),
        notices=reached.notices,
        problems=problems,
    )


def _may_share(
    ref: Ref,
    wanted: Wanted,
    balancer: LoadBalancer,
    can: Features,
    config: settings.LoadBalancer,
) -> tuple[Problem, ...]:
    """Say why the Service must not use another's load balancer."""
    if not can.tags:
        message = "a load balancer is shared only where Octavia has tags (API 2.5)"
        return (Problem(Reason.UNSUPPORTED, message, is_fatal=True),)
    if wanted.is_internal:
        message = "internal Service cannot share a load balancer"
        return (Problem(Reason.UNSUPPORTED, message, is_fatal=True),)
    users = names.services(balancer.tags)
    if names.load_balancer(ref) not in users and len(users) >= config.max_shared_lb:
        message = (
            f"load balancer {balancer.id} already shared with {len(users)} Services;"
            f" [LoadBalancer] max-shared-lb is {config.max_shared_lb}"
        )
        return (Problem(Reason.SHARED_LIMIT, message, is_fatal=True),)
    return ()


def _monitors(wanted: Wanted, balancer: LoadBalancer) -> bool:
    """Say whether pools have monitors: the default for Local only where we made it."""
    if wanted.monitored is Monitored.LOCAL:
        made = names.MADE in balancer.tags or names.marks_in(balancer.description)
        return bool(made)
    return wanted.monitored is Monitored.YES


def _tags(ref: Ref, context: Context, place: tree.Place) -> tuple[Step, ...]:
    """Add the reference's tag and, on an own load balancer, our mark."""
    balancer = place.balancer
    url = f"lbaas/loadbalancers/{quoted(balancer.id)}"
    is_own = place.relation is Relation.OWNED
    if not context.can.tags:
        if not is_own or names.mark(ref) in identity.marks_of(balancer):
            return ()
        text = names.marked(balancer.description or "", ref)
        body: dict[str, object] = {"description": text}
        what = "description"
    else:
        wanted = context.tags if is_own else (context.owner,)
        missing = [tag for tag in wanted if tag not in balancer.tags]
        if not missing:
            return ()
        body = {"tags": [*(tag for tag in balancer.tags if tag), *missing]}
        what = "tags"
    why = "it does not say whose it is"
    step = requests.change(
        (*place.path, what), why, url, {"loadbalancer": body}, balancer.id
    )
    return (step,)


def _groups(
    ref: Ref, wanted: Wanted, seen: Tree, config: settings.LoadBalancer
) -> tuple[tuple[Step, ...], tuple[Problem, ...]]:
    if config.manage_security_groups:
        return groups.keep(ref, wanted, seen.around, config.lb_provider)
    return tuple(groups.remove(seen.around)), ()


def _health(wanted: Wanted, context: Context) -> tuple[Problem, ...]:
    """Warn where Nodes without a Pod would swallow traffic."""
    asks = context.monitors and context.can.http_monitors
    if not wanted.is_local or asks:
        return ()
    message = (
        "externalTrafficPolicy is Local, but no monitor asks the healthCheckNodePort:"
        " Nodes without a Pod drop traffic; set annotation"
        f" {keys.ENABLE_MONITOR} to 'true'"
    )
    return (Problem(Reason.NO_HEALTH_CHECK, message),)


def _unchangeable(
    wanted: Wanted, balancer: LoadBalancer, relation: Relation, can: Features
) -> tuple[Problem, ...]:
    """Say what was asked for since the load balancer was made, and can't be had."""
    if relation is not Relation.OWNED:
        return ()
    place = wanted.placement
    pairs = [
        ("port-id", place.port_id, balancer.vip_port_id),
        ("subnet-id", "" if place.port_id else place.subnet_id, balancer.vip_subnet_id),
        ("flavor-id", place.flavor_id if can.flavors else "", balancer.flavor_id),
        (
            "availability-zone",
            place.availability_zone if can.zones else "",
            balancer.availability_zone,
        ),
    ]
    if not place.port_id and not place.subnet_id:
        pairs.append(("network-id", place.network_id, balancer.vip_network_id))
    is_vip = wanted.is_internal or ":" in (balancer.vip_address or "")
    if is_vip:
        pairs.append(("loadBalancerIP", wanted.address, balancer.vip_address))
    told = [
        f"{name} is {is_ or 'none'}, wanted {wish}"
        for name, wish, is_ in pairs
        if wish and wish != is_
    ]
    version = 6 if ":" in (balancer.vip_address or "") else 4
    if balancer.vip_address and str(wanted.family) != f"IPv{version}":
        told.append(f"the VIP is IPv{version}, wanted {wanted.family}")
    if len(wanted.families) > 1 and not balancer.additional_vips:
        told.append(f"there is no VIP of {wanted.families[1]}")
    if not told:
        return ()
    message = (
        f"load balancer {balancer.id} can't be changed in this: {'; '.join(told)};"
        " make the Service anew to have it"
    )
    return (Problem(Reason.IMMUTABLE, message),)


def _ignored(
    ref: Ref, wanted: Wanted, seen: Tree, config: settings.LoadBalancer
) -> tuple[Notice, ...]:
    """Say that source ranges don't count, where the user gave any."""
    enforced = config.lb_provider == "ovn" and config.manage_security_groups
    if seen.features.cidrs or enforced or not wanted.has_ranges:
        return ()
    message = (
        f"LoadBalancerSourceRanges are ignored for Service {ref.key} because Octavia"
        " provider does not support it"
    )
    return (Notice(NoticeType.WARNING, "LoadBalancerSourceRangesIgnored", message),)


def _annotations(
    balancer: LoadBalancer, relation: Relation
) -> tuple[tuple[str, str | None], ...]:
    """Write the ids down: by them a Service finds its load balancer again."""
    owned = balancer.id if relation is Relation.OWNED else None
    return ((keys.LOAD_BALANCER_ID, balancer.id), (keys.OWNED_ID, owned))


def _results(
    wanted: Wanted,
    balancer: LoadBalancer,
    relation: Relation,
    reached: Reached,
    config: settings.LoadBalancer,
) -> Results:
    ids = _annotations(balancer, relation)
    if not reached.address:
        return Results(annotations=ids)
    return Results(
        ingress=ingress(wanted, balancer, reached.address, config),
        annotations=(*ids, (keys.LOAD_BALANCER_ADDRESS, reached.address)),
    )


def ingress(
    wanted: Wanted,
    balancer: LoadBalancer,
    address: str,
    config: settings.LoadBalancer,
) -> tuple[Ingress, ...]:
    """Give the status: a hostname, or addresses with their mode.

    With the proxy protocol kube-proxy must not short-cut the load balancer.

    Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
    (createLoadBalancerStatus); KEP 1860.
    """
    if wanted.hostname:
        return (Ingress(hostname=wanted.hostname),)
    if wanted.proxy is not Proxy.NONE and config.enable_ingress_hostname:
        return (Ingress(hostname=f"{address}.{config.ingress_hostname_suffix}"),)
    mode = IpMode.PROXY if wanted.proxy is not Proxy.NONE else IpMode.VIP
    others: tuple[str, ...] = ()
    if len(wanted.families) > 1:
        others = tuple(vip.ip_address for vip in balancer.additional_vips)
    return tuple(Ingress(ip=each, ip_mode=mode) for each in (address, *others))
