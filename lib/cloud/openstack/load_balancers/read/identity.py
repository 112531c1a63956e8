"""Ownership: which load balancer belongs to a Service: pure.

Rules: the ownership tag decides. A load balancer without one is adopted only if it has
the Service's name and the Service refers to it: by its load-balancer-id annotation, or
by the address in its status. A name alone proves nothing, because clusters of one name
share projects; an annotation alone proves nothing, because users write annotations.
"""

import dataclasses
import datetime
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.load_balancers import Reason, Ref, Target
from lib.cloud.openstack.load_balancers.read import copies
from lib.cloud.openstack.load_balancers.read.native import (
    DELETED,
    PENDING_DELETE,
    FloatingIp,
    Listener,
    LoadBalancer,
)
from lib.cloud.openstack.load_balancers.read.observed import Identity, Relation
from lib.cloud.openstack.load_balancers.spec import annotations, names
from lib.cloud.openstack.load_balancers.spec.desired import Desired, Hints
from lib.cloud.steps import CommonReason, Problem

TWIN_S = 900.0
"""Seconds between the creations of two load balancers of which one was made by
mistake: a request of unknown outcome is repeated after a minute or two."""


def hints_of(ref: Ref) -> Hints:
    """Return the room's own part of a ref."""
    return ref.native if isinstance(ref.native, Hints) else Hints()


def names_of(ref: Ref) -> names.Names:
    """Return the names and tags of a Service's objects."""
    return hints_of(ref).names or names.of(ref)


def desired_of(target: Target) -> Desired | None:
    """Return this package's own part of a target's spec."""
    if target.spec is None or not isinstance(target.spec.native, Desired):
        return None
    return target.spec.native


def ownership_tags_of(balancer: LoadBalancer) -> frozenset[str]:
    """Return the ownership tags: of the description where Octavia has no tags."""
    return ownership_tags(balancer.tags) | ownership_tags_in(balancer.description)


def ownership_tags(tags: Iterable[str]) -> frozenset[str]:
    """Return all ownership tags among tags, of any cluster."""
    return frozenset(
        [tag for tag in tags if tag.startswith(names.OWNERSHIP_TAG_PREFIX)]
    )


def ownership_tags_in(text: str | None) -> frozenset[str]:
    """Return the ownership tag at the end of a description."""
    return frozenset(names.TAG_IN_DESCRIPTION.findall(text or ""))


def is_served(ref: Ref) -> bool:
    """Report whether the status of a Service shows an address or a name."""
    hints = hints_of(ref)
    return bool(hints.addresses) or hints.shows_name


def ids_of(ref: Ref) -> frozenset[str]:
    """Return the IDs of load balancers that a Service leads to."""
    hints = hints_of(ref)
    return frozenset({hints.given_id, hints.owned_id} - {""})


def missing_keys(
    ref: Ref,
    observed: Identity,
    missing: Mapping[str, object],
    is_deleting: Callable[[Hashable], bool],
    tagged: frozenset[str] = frozenset(),
) -> list[Hashable]:
    """Return what a Service leads to and is absent, as far as nothing explains it.

    missing: what direct reads of IDs answered: an object, an error, or None: not found.
    is_deleting: reports whether an ID or a Service's UID was observed being deleted.
    tagged: IDs of load balancers that were observed with the Service's tag.

    Raises:
        CloudError: it is unknown whether the load balancer exists.
    """
    hints, ids = hints_of(ref), ids_of(ref)
    if observed.load_balancer is None:
        ids |= tagged
    keys: list[Hashable] = []
    for id_ in sorted(ids):
        answer = missing.get(id_, errors.NotFound)
        is_own = id_ == hints.owned_id or id_ in tagged
        if observed.load_balancer is not None and not is_own:
            continue  # a user named it, and it is not used
        if isinstance(answer, errors.CloudError):
            if is_own and isinstance(answer, errors.Forbidden):
                raise copies.of_other_project(answer) from answer
            if not isinstance(answer, errors.Forbidden):
                raise answer
        elif answer is None and not is_deleting(id_):
            keys.append(id_)
    is_none = observed.load_balancer is None and not observed.going
    if not ids and hints.addresses and is_none and not is_deleting(ref.uid):
        keys.append((ref.uid, hints.addresses))
    return keys


def owners(
    listed: Iterable[LoadBalancer], refs: Iterable[Ref], known: Collection[str]
) -> Mapping[str, str]:
    """Return the Services' UIDs by the IDs of the cluster's load balancers.

    known: IDs that Services lead to; without a tag the UID is empty.
    """
    prefixes = {f"{names.OWNERSHIP_TAG_PREFIX}{ref.cluster.id}:" for ref in refs}
    uid_by_id: dict[str, str] = {}
    for balancer in listed:
        uids = [
            tag.removeprefix(prefix)
            for tag in ownership_tags_of(balancer)
            for prefix in prefixes
            if tag.startswith(prefix)
        ]
        if (uids or balancer.id in known) and not is_deleting(balancer):
            uid_by_id[balancer.id] = uids[0] if uids else ""
    return uid_by_id


def substitute(ref: Ref) -> str:
    """Return what stands for the load balancer of a Service that names none."""
    return f"Service {ref.uid}"


def served_by(
    ref: Ref, absent: Iterable[Hashable], is_known: Callable[[str], bool]
) -> frozenset[str]:
    """Return those of these IDs by which a Service has certainly been served.

    An annotation alone proves nothing: users write it. Without what a user confirms.
    """
    hints = hints_of(ref)
    is_shown = is_served(ref)
    own: set[str] = set()
    for key in absent:
        if not isinstance(key, str):
            own.add(substitute(ref))
        elif is_known(key) or (is_shown and key == hints.owned_id):
            own.add(key)
    return frozenset(own - hints.confirmed)


def services(tags: Iterable[str]) -> frozenset[str]:
    """Return the tags that the reference counts as users of a load balancer."""
    return frozenset([tag for tag in tags if tag.startswith(names.SERVICE_PREFIX)])


def is_pending(balancer: LoadBalancer) -> bool:
    """Report whether Octavia is changing a load balancer, and refuses writes."""
    return balancer.provisioning_status.startswith("PENDING_")


def is_deleting(balancer: LoadBalancer) -> bool:
    """Report whether a load balancer is being deleted, or was."""
    return balancer.provisioning_status in (DELETED, PENDING_DELETE)


def is_ours(floating_ip: FloatingIp, ref: Ref) -> bool:
    """Report whether a floating IP was made for the Service; it may be free by now."""
    return names_of(ref).ownership_tag in ownership_tags_in(floating_ip.description)


def was_ours(floating_ip: FloatingIp, ref: Ref) -> bool:
    """Report whether a floating IP that is free was the Service's before.

    The reference's description counts only with the address in the Service's status.
    """
    described = floating_ip.description == names.floating_ip(ref) or _has_former(
        floating_ip, ref
    )
    had = floating_ip.floating_ip_address in hints_of(ref).addresses
    return is_ours(floating_ip, ref) or (described and had)


def is_made_on(floating_ip: FloatingIp, balancer: LoadBalancer, ref: Ref) -> bool:
    """Report whether a floating IP on this VIP was made for the Service.

    balancer: the Service's own. The reference's description alone does not distinguish
    clusters. It holds the cluster's name at that time: the reference renames load
    balancers when that changes, and leaves floating IPs as they are.
    """
    if is_ours(floating_ip, ref):
        return True
    if not balancer.vip_port_id or floating_ip.port_id != balancer.vip_port_id:
        return False
    text = floating_ip.description or ""
    if _has_former(floating_ip, ref):
        return True
    if names.MADE in balancer.tags or ownership_tags_in(text):
        return text == names.floating_ip(ref)
    return text.startswith(names.floating_ip_of_any_cluster(ref))


def _has_former(floating_ip: FloatingIp, ref: Ref) -> bool:
    """Report whether it has the Service's ownership tag of another cluster ID."""
    return any(
        names.is_former(tag, ref) for tag in ownership_tags_in(floating_ip.description)
    )


def relation_to_former(ref: Ref, balancer: LoadBalancer) -> Relation:
    """Return what a load balancer that a Service has left was to it."""
    is_tagged = names_of(ref).ownership_tag in ownership_tags_of(balancer)
    return Relation.OWNED if is_tagged else Relation.SHARED


def other_users(balancer: LoadBalancer, ref: Ref) -> frozenset[str]:
    """Return the tags of Services that are on it beside its owner and this Service.

    Of whichever cluster. A Service of the same name has the same tag of the reference:
    there the UID decides.
    """
    own = names_of(ref)
    named = services(balancer.tags) - {own.all_[0], balancer.name}
    users = {tag for tag in balancer.tags if tag.startswith(names.USER_PREFIX)}
    others = {tag for tag in users - {own.user} if not names.is_former(tag, ref)}
    return named | others


def is_abandoned(
    balancer: LoadBalancer, listeners: Sequence[Listener], leaving: Collection[Ref]
) -> bool:
    """Report whether all Services that use it, and no other, are being deleted.

    Each tag and each listener has to lead to one of them.
    """
    own = [names_of(ref) for ref in leaving]
    tags = {each.ownership_tag for each in own}
    known = tags | {each.all_[0] for each in own} | {each.user for each in own}
    known |= {names.MADE, balancer.name}
    if not set(balancer.tags) <= known or not ownership_tags_of(balancer) <= tags:
        return False
    return all(ownership_tags(listener.tags) & tags for listener in listeners)


class Index:
    """What a project holds, by all that can lead a Service to it.

    With thousands of load balancers a search through all of them for each Service
    takes minutes.
    """

    def __init__(
        self,
        load_balancers: Sequence[LoadBalancer],
        floating_ips: Iterable[FloatingIp],
    ) -> None:
        self._load_balancers = load_balancers
        self._places: dict[str, list[int]] = {}
        self._by_port: dict[str, list[FloatingIp]] = {}
        for place, balancer in enumerate(load_balancers):
            for key in {
                balancer.id,
                balancer.name,
                *balancer.tags,
                *ownership_tags_of(balancer),
            }:
                self._places.setdefault(key, []).append(place)
        for ip in floating_ips:
            if ip.port_id:
                self._by_port.setdefault(ip.port_id, []).append(ip)

    def identify(self, ref: Ref) -> Identity:
        """Find the Service's load balancer; as `identify` does among all."""
        hints, own = hints_of(ref), names_of(ref)
        keys = {hints.given_id, hints.owned_id, own.ownership_tag, own.user, *own.all_}
        places = {p for key in keys for p in self._found(key)}
        near = [self._load_balancers[place] for place in sorted(places)]
        ports = {balancer.vip_port_id for balancer in near if balancer.vip_port_id}
        floating_ips = [ip for port in ports for ip in self._by_port.get(port, ())]
        return identify(ref, near, floating_ips)

    def _found(self, key: str) -> Sequence[int]:
        return self._places.get(key, ()) if key else ()


def identify(
    ref: Ref,
    load_balancers: Sequence[LoadBalancer],
    floating_ips: Collection[FloatingIp],
) -> Identity:
    """Find the Service's load balancer among all of the project."""
    main = _main(ref, load_balancers, floating_ips)
    beside = (main.load_balancer, *main.duplicates, *main.kept)
    known = {balancer.id for balancer in beside if balancer is not None}
    user, own_tag = names_of(ref).user, names_of(ref).ownership_tag
    # Beside an owned one there may be others with its tag that were never left.
    is_shared = main.relation is Relation.SHARED
    former = tuple(
        balancer
        for balancer in load_balancers
        if user in balancer.tags or is_shared and own_tag in ownership_tags_of(balancer)
        if balancer.id not in known and not is_deleting(balancer)
    )
    return dataclasses.replace(main, former=former)


def _main(
    ref: Ref,
    load_balancers: Sequence[LoadBalancer],
    floating_ips: Collection[FloatingIp],
) -> Identity:
    hints, own = hints_of(ref), names_of(ref)
    own_tag = own.ownership_tag
    tagged = [
        balancer
        for balancer in load_balancers
        if own_tag in ownership_tags_of(balancer)
    ]
    going = tuple(balancer for balancer in tagged if is_deleting(balancer))
    owned = [balancer for balancer in tagged if not is_deleting(balancer)]
    others = [
        balancer
        for balancer in load_balancers
        if not is_deleting(balancer) and balancer not in tagged
    ]
    if owned and not _is_moved(ref, others, floating_ips):
        chosen = _of_tagged(ref, owned, going, floating_ips)
        named = tuple(balancer for balancer in others if balancer.name in own.all_)
        return dataclasses.replace(chosen, namesakes=named)
    if hints.given_id:
        return _of_given(ref, load_balancers, floating_ips, going)
    return _by_address(ref, others, floating_ips, going)


def is_referred(
    balancer: LoadBalancer, ref: Ref, floating_ips: Collection[FloatingIp]
) -> bool:
    """Report whether the Service refers to it, by id or by its status's address."""
    hints = hints_of(ref)
    return balancer.id in (hints.given_id, hints.owned_id) or bool(
        addresses(balancer, floating_ips) & set(hints.addresses)
    )


def addresses(
    balancer: LoadBalancer, floating_ips: Collection[FloatingIp]
) -> frozenset[str]:
    """Return all addresses under which it can be reached."""
    addresses_ = {balancer.vip_address or ""} | {
        vip.ip_address for vip in balancer.additional_vips
    }
    if balancer.vip_port_id:
        addresses_ |= {
            ip.floating_ip_address
            for ip in floating_ips
            if ip.port_id == balancer.vip_port_id
        }
    return frozenset(addresses_ - {""})


def adopts(
    ref: Ref,
    balancer: LoadBalancer,
    relation: Relation,
    floating_ips: Collection[FloatingIp],
) -> bool:
    """Report whether listeners without an ownership tag may belong to the Service.

    The reference's tag is a name, which Services of several clusters may share. On a
    shared load balancer it is respected only if the Service's status shows that it was
    served there, and only until our own tag is set, after those of the listeners.
    """
    if relation is Relation.OWNED:
        return True
    was_there = bool(addresses(balancer, floating_ips) & set(hints_of(ref).addresses))
    return was_there and names_of(ref).user not in balancer.tags


def _is_moved(
    ref: Ref,
    others: Sequence[LoadBalancer],
    floating_ips: Collection[FloatingIp],
) -> bool:
    """Report whether the Service, which has its own, is moved to a shared one."""
    given_id = hints_of(ref).given_id
    return any(
        balancer.id == given_id
        and _relation(balancer, ref, floating_ips) is Relation.SHARED
        for balancer in others
    )


def _of_tagged(
    ref: Ref,
    owned: list[LoadBalancer],
    going: tuple[LoadBalancer, ...],
    floating_ips: Collection[FloatingIp],
) -> Identity:
    """Choose the one that is referred to, else the oldest, else the lowest id."""
    owned.sort(
        key=lambda balancer: (
            not is_referred(balancer, ref, floating_ips),
            balancer.created_at or "",
            balancer.id,
        )
    )
    first, *rest = owned
    rest = [balancer for balancer in rest if balancer.id != first.id]
    given_id = hints_of(ref).given_id
    problem = None
    if given_id and given_id != first.id:
        message = (
            f"the Service owns load balancer {first.id}; load balancer {given_id},"
            " which it names, is ignored"
        )
        problem = Problem(Reason.NOT_OWNED, message)
    unused = [
        balancer for balancer in rest if not is_referred(balancer, ref, floating_ips)
    ]
    spares = [
        balancer for balancer in unused if _is_spare(balancer, first, ref, floating_ips)
    ]
    kept = tuple(balancer for balancer in unused if balancer not in spares)
    shown = set(hints_of(ref).addresses)
    return Identity(
        first,
        Relation.OWNED,
        going,
        tuple(spares),
        problem=problem,
        kept=kept,
        shown_ids=tuple(x.id for x in rest if addresses(x, floating_ips) & shown),
    )


def _is_spare(
    balancer: LoadBalancer,
    first: LoadBalancer,
    ref: Ref,
    floating_ips: Collection[FloatingIp],
) -> bool:
    """Report whether a load balancer beside the one in use was created by mistake.

    An older one, one that has a floating IP, and one that was created long after the
    one in use, may have been in use before; then its address may still be. first: the
    one in use, to which the Service refers.
    """
    if balancer.id in hints_of(ref).confirmed:
        return True
    has_floating_ip = addresses(balancer, floating_ips) - addresses(balancer, ())
    after_s = _created_s(balancer) - _created_s(first)
    return (
        is_referred(first, ref, floating_ips)
        and 0 <= after_s <= TWIN_S
        and not has_floating_ip
    )


def _created_s(balancer: LoadBalancer) -> float:
    """Return when a load balancer was created, in seconds; 0.0: not known."""
    try:
        created = datetime.datetime.fromisoformat(balancer.created_at or "")
    except ValueError:
        return 0.0
    return created.replace(tzinfo=datetime.UTC).timestamp()


def is_released(ref: Ref, floating_ips: Collection[FloatingIp]) -> bool:
    """Report whether the floating IP in the Service's status leads nowhere.

    Neutron detaches it when the port of its load balancer is deleted: a list that lacks
    objects cannot show that.
    """
    shown = hints_of(ref).addresses
    return any(
        not ip.port_id and ip.floating_ip_address in shown for ip in floating_ips
    )


def _of_given(
    ref: Ref,
    load_balancers: Sequence[LoadBalancer],
    floating_ips: Collection[FloatingIp],
    going: tuple[LoadBalancer, ...],
) -> Identity:
    """Use the one that the annotation names: adopted by its name, else shared."""
    hints = hints_of(ref)
    balancer = next(
        (candidate for candidate in load_balancers if candidate.id == hints.given_id),
        None,
    )
    if balancer is None or is_deleting(balancer):
        if hints.is_leftover or hints.owned_id == hints.given_id:
            gone = going if balancer is None else tuple({*going, balancer})
            by_address = _by_address(ref, _present(load_balancers), floating_ips, gone)
            was_lost = by_address.load_balancer is None and not hints.is_leftover
            return dataclasses.replace(by_address, was_lost=was_lost)
        message = (
            f"load balancer {hints.given_id}, which the Service names: not found;"
            " remove the annotation to have one created"
        )
        problem = Problem(Reason.MISSING, message, is_fatal=True)
        return Identity(going=going, problem=problem)
    is_noted = hints.owned_id == hints.given_id and not is_served(ref)
    if is_noted and _is_of_other_service(balancer, ref):
        others = [each for each in _present(load_balancers) if each.id != balancer.id]
        by_address = _by_address(ref, others, floating_ips, going)
        problem = by_address.problem or copies.problem(ref, balancer.id)
        return dataclasses.replace(by_address, problem=problem)
    return Identity(balancer, _relation(balancer, ref, floating_ips), going)


def _is_of_other_service(balancer: LoadBalancer, ref: Ref) -> bool:
    """Report whether it has ownership tags, and none of them is the Service's."""
    tags = ownership_tags_of(balancer)
    return bool(tags) and not any(
        tag == names_of(ref).ownership_tag or names.is_former(tag, ref) for tag in tags
    )


def _relation(
    balancer: LoadBalancer, ref: Ref, floating_ips: Collection[FloatingIp]
) -> Relation:
    """Return what a load balancer without the Service's ownership tag is to it.

    Annotations are written by users: which load balancer they name proves nothing. Only
    its name and the addresses in the status, which no user writes, do.
    """
    own = names_of(ref)
    if tags := ownership_tags_of(balancer):
        was_ours = all(names.is_former(tag, ref) for tag in tags)
        is_given = balancer.id == hints_of(ref).owned_id and balancer.name in own.all_
        return Relation.OWNED if was_ours and is_given else Relation.SHARED
    if balancer.name in own.all_:
        return Relation.OWNED
    if own.user in balancer.tags or not _is_of_other_cluster_name(balancer, ref):
        return Relation.SHARED
    shown = set(hints_of(ref).shown_ips)
    was_served = bool(addresses(balancer, floating_ips) & shown)
    return Relation.OWNED if was_served else Relation.SHARED


def _by_address(
    ref: Ref,
    others: Sequence[LoadBalancer],
    floating_ips: Collection[FloatingIp],
    going: tuple[LoadBalancer, ...],
) -> Identity:
    shown = set(hints_of(ref).addresses)
    named = [balancer for balancer in others if balancer.name in names_of(ref).all_]
    matching = [
        balancer
        for balancer in named
        if not ownership_tags_of(balancer) and addresses(balancer, floating_ips) & shown
    ]
    if len(matching) > 1:
        ids = ", ".join(sorted(balancer.id for balancer in matching))
        message = (
            f"several load balancers have the Service's name and address: {ids}; name"
            f" the one to be used in annotation {annotations.LOAD_BALANCER_ID}"
        )
        problem = Problem(CommonReason.AMBIGUOUS, message, is_fatal=True)
        return Identity(going=going, problem=problem)
    if matching:
        return Identity(matching[0], Relation.OWNED, going)
    return Identity(going=going, namesakes=tuple(named))


def _present(load_balancers: Sequence[LoadBalancer]) -> list[LoadBalancer]:
    return [balancer for balancer in load_balancers if not is_deleting(balancer)]


def _is_of_other_cluster_name(balancer: LoadBalancer, ref: Ref) -> bool:
    """Report whether it is this Service's by name, but for the cluster's name."""
    tail = f"_{ref.namespace}_{ref.name}"
    return balancer.name.startswith(names.SERVICE_PREFIX) and balancer.name.endswith(
        tail
    )
