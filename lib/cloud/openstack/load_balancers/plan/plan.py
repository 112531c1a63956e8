"""Plan that creates and updates a Service's load balancer: pure.

Rules: a plan ends where the next step needs an answer. Nothing is planned for a load
balancer that Octavia is changing. Objects that are not owned are never touched.
"""

import dataclasses
from collections.abc import Collection, Iterable

from lib.cloud.load_balancers import (
    IpFamily,
    Observed,
    Plan,
    Reason,
    Ref,
    Results,
    Target,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.plan import (
    actions,
    bodies,
    creation,
    deletion,
    floating,
    groups,
    report,
    restriction,
    tree,
)
from lib.cloud.openstack.load_balancers.plan.actions import Action, Kind
from lib.cloud.openstack.load_balancers.plan.bodies import Context
from lib.cloud.openstack.load_balancers.plan.case import Case
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.read.native import ACTIVE, ERROR, LoadBalancer
from lib.cloud.openstack.load_balancers.read.observed import Former, Relation, Tree
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names, providers
from lib.cloud.openstack.load_balancers.spec.desired import Desired, Monitored, OnError
from lib.cloud.steps import CommonReason, Problem, Step, grouped

POLL_S = 2.0
"""Interval at which a load balancer that Octavia is changing is read."""
ERROR_POLL_S = 60.0
"""Interval at which a load balancer in ERROR is read again."""


def plan(target: Target, observed: Observed, config: settings.LoadBalancer) -> Plan:
    """See the protocol."""
    native = observed.native
    if not isinstance(native, Tree):
        raise TypeError("the observation is of another provider package")
    desired = identity.desired_of(target)
    if desired is None or target.spec is None:
        whole = deletion.plan(target.ref, native, config)
        if target.only is None:
            return whole
        return restriction.to(target.only, whole, target.ref, native, config)
    case = Case(target.ref, desired, native, config)
    case, unsupported = _with_algorithm(case)
    planned = Plan() if _is_fatal(unsupported) else _wanted(case)
    known = (*target.spec.problems, *unsupported)
    return dataclasses.replace(
        planned,
        problems=(
            *known,
            *report.ignored(case),
            *planned.problems,
        ),
    )


def _with_algorithm(case: Case) -> tuple[Case, tuple[Problem, ...]]:
    """Return the case with an algorithm that the provider has.

    The algorithm of cloud.conf is that of the provider of cloud.conf: a load balancer
    of another provider has the only one of its provider, or keeps those of its pools.
    """
    allowed = providers.algorithms(case.provider)
    if case.desired.algorithm in allowed:
        return case, ()
    used = allowed[0] if len(allowed) == 1 else ""
    fitting = dataclasses.replace(
        case, desired=dataclasses.replace(case.desired, algorithm=used)
    )
    is_new = case.observed.identity.load_balancer is None
    if not (is_new or case.desired.names_algorithm):
        return fitting, ()
    return fitting, (report.unsupported_algorithm(case, allowed, is_fatal=is_new),)


def _wanted(case: Case) -> Plan:
    observed = case.observed.identity
    if observed.absent_in_s:
        absent = report.absent(observed)
        return Plan(retry_after_s=observed.absent_in_s, problems=absent)
    problems = [
        *((observed.problem,) if observed.problem else ()),
        *report.kept(observed),
        *case.environment.problems,
    ]
    if _is_fatal(problems):
        return Plan(problems=(*problems, *report.stays(case.observed)))
    if observed.load_balancer is None:
        planned = _new(case)
    elif observed.load_balancer.provisioning_status == ACTIVE:
        planned = _active(case)
    else:
        planned = _not_active(case)
    if planned.settled and case.observed.former:
        planned = _moved(case, planned)
    spares = tuple(
        deletion.spare(balancer)
        for balancer in observed.duplicates
        if balancer.provisioning_status in (ACTIVE, ERROR) and not observed.twins_in_s
    )
    # One that Octavia is changing cannot be deleted yet, and must not be forgotten.
    waits = planned.settled and bool(observed.duplicates)
    pending_id = next(
        (each.id for each in observed.duplicates if identity.is_pending(each)), ""
    )
    # The deletion of one in ERROR may end in ERROR again.
    fails = bool(spares) and any(
        balancer.provisioning_status == ERROR for balancer in observed.duplicates
    )
    return dataclasses.replace(
        planned,
        backs_off=planned.backs_off or (planned.settled and fails),
        steps=(*planned.steps, *spares),
        settled=planned.settled and not observed.duplicates,
        object_id=pending_id if waits and not spares else planned.object_id,
        retry_after_s=(
            max(POLL_S, observed.twins_in_s) if waits else planned.retry_after_s
        ),
        problems=(*problems, *planned.problems),
    )


def _moved(case: Case, planned: Plan) -> Plan:
    """Remove the Service from its former load balancer: another one serves it now.

    planned: the plan for the current load balancer, which is complete.
    """
    if planned.results.ingress is None:
        # Clients still use the address in the Service's status.
        return dataclasses.replace(
            planned, problems=(*planned.problems, *report.stays(case.observed))
        )
    main = case.observed.identity.load_balancer
    why = f"the Service has moved to load balancer {main.id if main else ''}"
    left = deletion.leave(case.ref, case.observed, case.config, why)
    problems = (*planned.problems, *left.problems)
    return dataclasses.replace(
        left, results=planned.results, notices=planned.notices, problems=problems
    )


def context_of(case: Case, owner: str, *, monitors: bool) -> Context:
    """Gather what all requests for this Service have in common."""
    tags = (owner, identity.names_of(case.ref).ownership_tag) if case.can.tags else ()
    place = case.desired.placement
    member_subnet_id = place.member_subnet_id or case.environment.node_subnet_id
    return Context(case.desired, case.can, owner, tags, member_subnet_id, monitors)


def context_on(case: Case) -> Context:
    """Build the context for an existing load balancer."""
    is_own = case.relation is Relation.OWNED
    owner = case.balancer.name if is_own else names.load_balancer(case.ref)
    monitors = _monitors(case.desired, case.balancer)
    here = _with_reachable_cidrs(case.desired, _vip_versions(case))
    return context_of(dataclasses.replace(case, desired=here), owner, monitors=monitors)


def _vip_versions(case: Case) -> Collection[int]:
    """Return the IP versions of the VIPs; of a new load balancer those it will have."""
    balancer = case.observed.identity.load_balancer
    if balancer is None:
        second = bool(creation.second_vip(case))
        families = case.desired.families if second else case.desired.families[:1]
        return {6 if each is IpFamily.IPV6 else 4 for each in families}
    vips = [balancer.vip_address, *(v.ip_address for v in balancer.additional_vips)]
    return {report.version_of(vip) for vip in vips if vip}


def _unserved(case: Case) -> tuple[Problem, ...]:
    """Report families and source ranges for which there is no VIP."""
    family = report.ignored_family(case)
    if not report.enforces_ranges(case):
        return family
    ranges = report.unreachable_ranges(case.desired, _vip_versions(case))
    return (*family, *ranges)


def _with_reachable_cidrs(desired: Desired, versions: Collection[int]) -> Desired:
    """Drop CIDRs of an IP version without a VIP: Octavia refuses them.

    versions: of the VIPs. If no other CIDR is left, all stay, because an empty list
    would allow all clients.
    """
    fitting = [cidr for cidr in desired.cidrs if report.version_of(cidr) in versions]
    return dataclasses.replace(desired, cidrs=tuple(fitting or desired.cidrs))


def context_new(case: Case) -> Context:
    """Build the context for a load balancer that is to be created."""
    monitors = case.desired.monitored is not Monitored.NO
    owner = creation.name_of(case)
    here = _with_reachable_cidrs(case.desired, _vip_versions(case))
    return context_of(dataclasses.replace(case, desired=here), owner, monitors=monitors)


def _new(case: Case) -> Plan:
    source = case.environment.source
    if source.problem is not None:
        return Plan(problems=(source.problem,))
    context = context_new(case)
    problems = (*creation.diagnostics(case), *_unserved(case))
    if case.observed.identity.was_lost:
        message = (
            "the Service's load balancer was deleted by another client; it is recreated"
        )
        problems = (*problems, Problem(CommonReason.DRIFT, message))
    problems = (*problems, *report.health(case.desired, context))
    steps = (creation.step(case, context),)
    return Plan(steps, retry_after_s=POLL_S, problems=problems)


def _not_active(case: Case) -> Plan:
    """Wait for one that is changing; recreate one in ERROR that never was usable."""
    results = Results(annotations=report.annotations(case.balancer, case.relation))
    if case.balancer.provisioning_status != ERROR:
        return Plan(retry_after_s=POLL_S, object_id=case.balancer.id, results=results)
    former = Former(case.balancer, case.relation)
    detach = deletion.Detach(case.ref, former, adopts=False)
    is_own = deletion.is_deleted_whole(detach)
    hints = identity.hints_of(case.ref)
    # A name in the status does not show which address was used: delete none then.
    own_ips, ips = case.balancer, case.environment.floating_ips
    addresses = identity.addresses(own_ips, ips)
    has_floating_ip = addresses > identity.addresses(own_ips, ())
    was_usable = (
        hints.shows_name or has_floating_ip or bool(addresses & {*hints.addresses})
    )
    message = f"load balancer {case.balancer.id} is in status ERROR"
    path = (f"load balancer {case.balancer.name}",)
    steps: tuple[Step, ...] = ()
    if is_own and not was_usable:
        message += " and never was usable; it is deleted and recreated"
        steps = (_delete(path, case.balancer, "it is in ERROR and never was usable"),)
    elif is_own and case.desired.on_error is OnError.RECREATE:
        message += f"; it is deleted and recreated, by annotation {keys.ON_ERROR}"
        steps = (_delete(path, case.balancer, "it is in ERROR"),)
    elif is_own and case.desired.on_error is OnError.FAILOVER:
        message += f"; it fails over, by annotation {keys.ON_ERROR}"
        action = Action(
            Kind.LOAD_BALANCER,
            case.balancer.id,
            observed=case.balancer,
            balancer_id=case.balancer.id,
            fails_over=True,
        )
        steps = (actions.ungated(actions.change(path, "it is in ERROR", action)),)
    else:
        message += f"; {report.error_remedy(is_own=is_own)}"
    problem = Problem(Reason.IN_ERROR, message)
    return Plan(
        steps,
        retry_after_s=None if steps else ERROR_POLL_S,
        backs_off=bool(steps),
        results=results,
        problems=(problem, *report.stays(case.observed)),
    )


def _delete(path: tuple[str, ...], balancer: LoadBalancer, why: str) -> Step:
    """Delete a load balancer in ERROR; its floating IP stays for the next one."""
    step = deletion.delete(path, why, balancer, cascades=True, forgets=True)
    return actions.ungated(step)


def _active(case: Case) -> Plan:
    relation = case.relation
    children = case.observed.children
    if children is None:
        return Plan(retry_after_s=POLL_S)
    if relation is Relation.SHARED:
        refusal = report.may_share(case)
        if refusal:
            return Plan(problems=(*refusal, *report.stays(case.observed)))
    context = context_on(case)
    adopts = identity.adopts(
        case.ref, case.balancer, relation, case.environment.floating_ips
    )
    place = tree.TreePlace(case.ref, case.balancer, relation, children, adopts)
    taken = tree.conflicts(place, context)
    if taken:
        return Plan(problems=(*taken, *report.stays(case.observed)))
    endpoint = floating.reach(case)
    steps = (
        *grouped("tags", _tags(case.ref, context, place)),
        *grouped("switch", _switched_on(place)),
        *tree.steps(place, context),
        *grouped("address", endpoint.steps),
    )
    more, problems = _groups(case)
    # Groups that are no longer managed are deleted first: only drift detection reads
    # them, and a step that waits for a gate ends it.
    is_kept = case.config.manage_security_groups
    all_steps = (*steps, *more) if is_kept else (*more, *steps)
    if not endpoint.address and endpoint.problems:
        endpoint = _unreached(endpoint, case.observed, is_last=not all_steps)
    problems = (
        *endpoint.problems,
        *problems,
        *report.health(case.desired, context),
        *report.lost_vip(case.observed, case.balancer),
        *report.switched_off(case.balancer, relation),
        *report.unchangeable(case),
        *_unserved(case),
    )
    tag = identity.names_of(case.ref).user
    if relation is Relation.SHARED and tag not in case.balancer.tags:
        # An address in the status may prove ownership where this tag is missing.
        endpoint = dataclasses.replace(endpoint, address="")
    return Plan(
        steps=all_steps,
        settled=not (all_steps or _is_fatal(endpoint.problems)),
        retry_after_s=POLL_S if all_steps else None,
        results=report.results(case, endpoint),
        notices=endpoint.notices,
        problems=problems,
    )


def _is_fatal(problems: Iterable[Problem]) -> bool:
    return any(problem.is_fatal for problem in problems)


def _unreached(
    endpoint: floating.VipEndpoint, observed: Tree, *, is_last: bool
) -> floating.VipEndpoint:
    """Fail where the Service has no address, so that it is retried soon.

    Another Service may provide it at any time: the owner attaches a floating IP.
    is_last: all else is in sync; before that it is not reported.
    """
    fatal = [dataclasses.replace(each, is_fatal=True) for each in endpoint.problems]
    problems = (*fatal, *report.stays(observed)) if is_last else ()
    return dataclasses.replace(endpoint, problems=problems)


def _monitors(desired: Desired, balancer: LoadBalancer) -> bool:
    """Report whether pools have monitors; the default for Local only on owned ones."""
    if desired.monitored is Monitored.LOCAL:
        is_created_here = names.MADE in balancer.tags or identity.ownership_tags_in(
            balancer.description
        )
        return bool(is_created_here)
    return desired.monitored is Monitored.YES


def _tags(ref: Ref, context: Context, place: tree.TreePlace) -> tuple[Step, ...]:
    """Add the reference's tag and, on an owned load balancer, the ownership tag."""
    balancer = place.balancer
    is_own = place.relation is Relation.OWNED
    if not context.can.tags:
        if not is_own or identity.names_of(
            ref
        ).ownership_tag in identity.ownership_tags_of(balancer):
            return ()
        text = names.with_ownership_tag(
            names.without_ownership_tag(balancer.description or ""), ref
        )
        fields: dict[str, object] = {"description": text}
        what = "description"
    else:
        own_tags = (context.owner, identity.names_of(ref).user)
        others = (
            own_tags[:1] if place.has_untagged else own_tags
        )  # see `identity.adopts`
        desired = context.tags if is_own else others
        missing = [tag for tag in desired if tag not in balancer.tags]
        if not missing:
            return ()
        old = place.former_tags
        kept = (tag for tag in balancer.tags if tag and tag not in old)
        fields = {"tags": [*kept, *missing]}
        what = "tags"
    why = "it lacks the ownership tag"
    return (actions.change((*place.path, what), why, place.setting(fields)),)


def _switched_on(place: tree.TreePlace) -> tuple[Step, ...]:
    """Enable an owned load balancer that another client has disabled."""
    balancer = place.balancer
    if balancer.admin_state_up or place.relation is not Relation.OWNED:
        return ()
    why = "admin_state_up is False, desired True"
    action = place.setting(bodies.SWITCHED_ON)
    return (actions.change((*place.path, "switch"), why, action),)


def _groups(case: Case) -> tuple[tuple[Step, ...], tuple[Problem, ...]]:
    if case.config.manage_security_groups:
        return groups.keep(case)
    return tuple(groups.remove(case.environment, case.environment.groups)), ()
