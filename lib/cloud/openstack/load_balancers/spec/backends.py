"""Nodes that receive traffic, and the addresses they receive it at: pure.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go
(nodeAddressForLB, filterNodes).
"""

import bisect
import dataclasses
import ipaddress
from collections.abc import Callable, Mapping, Sequence

from lib.cloud import provider_id
from lib.cloud.load_balancers import (
    Facts,
    IpFamily,
    Node,
    Reason,
)
from lib.cloud.model import AddressType
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.annotations import AnnotationReader
from lib.cloud.openstack.load_balancers.spec.desired import DesiredMember
from lib.cloud.steps import Problem
from lib.cloud.support import label_values
from lib.process import config as problems

_KINDS = (AddressType.INTERNAL_IP, AddressType.EXTERNAL_IP)
_VERSION = {IpFamily.IPV4: 4, IpFamily.IPV6: 6}
NAMED = 5
"""Nodes named in one problem, at most."""

MOST_KEPT = 1024
"""Different requests for which the choice is cached; most Services share one."""
MOST_ADDRESSED = 8
"""Combinations of family and member-cidr for which Nodes' addresses are kept."""
MOST_KEPT_MEMBERS = 2_000_000
"""Members of all choices that are kept, which bounds the memory."""

Cidrs = tuple[settings.Network, ...]
Nodes = tuple[Node, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class MemberRequest:
    """Request of a Service for members: Node labels, IP family, and CIDRs."""

    selector: tuple[tuple[str, str], ...]
    family: IpFamily
    cidrs: tuple[settings.Network, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """Nodes by name, each address once.

    without: names of those that have none. anchor: an address of any Node, by which the
    Nodes' subnet is found also when none fits. anchor_server: the ID of that Node's
    server; empty: its provider ID shows none.
    """

    members: tuple[DesiredMember, ...]
    without: tuple[str, ...]
    anchor: str
    anchor_server: str = ""


Choose = Callable[[Nodes, MemberRequest], Chosen]


@dataclasses.dataclass(frozen=True, slots=True)
class Addressed:
    """A Node with the address at which it would be a member; empty: it has none."""

    node: Node
    member: DesiredMember


def addressed(nodes: Nodes, family: IpFamily, cidrs: Cidrs) -> tuple[Addressed, ...]:
    """Return all Nodes by name with their addresses: what costs most of a choice."""
    return tuple(
        Addressed(node, DesiredMember(node.name, address_of(node, family, cidrs)))
        for node in sorted(nodes, key=lambda node: node.name)
    )


class LabelIndex:
    """Positions of Nodes, sorted by name, by each of their labels."""

    def __init__(self, nodes: Nodes) -> None:
        self._all = range(len(nodes))
        self._positions: dict[tuple[str, str], list[int]] = {}
        by_name = sorted(nodes, key=lambda node: node.name)
        for position, node in enumerate(by_name):
            for key, value in dict(node.labels).items():
                for label in dict.fromkeys(((key, value), (key, ""))):
                    self._positions.setdefault(label, []).append(position)

    def select(self, selector: Sequence[tuple[str, str]]) -> Sequence[int]:
        """Return the Nodes with all these labels; without a value any value fits.

        It costs as much as the rarest of the labels has Nodes.
        """
        if not selector:
            return self._all
        rarest, *others = sorted(
            (self._positions.get(label, []) for label in selector), key=len
        )
        return [p for p in rarest if all(_contains(other, p) for other in others)]


def _contains(positions: Sequence[int], position: int) -> bool:
    """Report whether a sorted sequence has a position."""
    index = bisect.bisect_left(positions, position)
    return index < len(positions) and positions[index] == position


def choose(nodes: Nodes, request: MemberRequest) -> Chosen:
    """Choose the Nodes that match a request."""
    candidates = addressed(nodes, request.family, request.cidrs)
    return _chosen(candidates, LabelIndex(nodes).select(request.selector))


def _chosen(candidates: Sequence[Addressed], positions: Sequence[int]) -> Chosen:
    by_address: dict[str, Addressed] = {}
    without: list[str] = []
    for candidate in map(candidates.__getitem__, positions):
        if candidate.member.address:
            by_address.setdefault(candidate.member.address, candidate)
        else:
            without.append(candidate.node.name)
    members = tuple(candidate.member for candidate in by_address.values())
    first = next(iter(by_address.values()), None)
    first = first or next(
        (candidate for candidate in candidates if candidate.member.address), None
    )
    if first is None:
        return Chosen(members, tuple(without), "")
    return Chosen(members, tuple(without), first.member.address, _server_id(first.node))


def _server_id(node: Node) -> str:
    try:
        parsed = provider_id.parse(node.provider_id)
    except provider_id.ProviderIdError:
        return ""
    return parsed.id if parsed.cloud == provider_id.OPENSTACK else ""


class Chooser:
    """Chooses once for all Services with equal requests and the same Nodes.

    Returns the previous object when other Nodes lead to an equal choice, so that it
    is cheap to keep and to compare. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._kept: tuple[Nodes, dict[MemberRequest, Chosen]] = ((), {})
        self._before: Mapping[MemberRequest, Chosen] = {}
        self._addressed: dict[tuple[IpFamily, Cidrs], tuple[Addressed, ...]] = {}
        self._labels: tuple[Nodes, LabelIndex] = ((), LabelIndex(()))
        self._size = 0

    def __call__(self, nodes: Nodes, request: MemberRequest) -> Chosen:
        """Choose the Nodes that match a request."""
        known, chosen = self._kept
        if known is not nodes:
            self._before, chosen = chosen, {}
            self._addressed, self._size = {}, 0
            self._kept = (nodes, chosen)
        if request not in chosen:
            choice, before = self._choose(nodes, request), self._before.get(request)
            choice = before if before == choice else choice
            size = self._size + len(choice.members) + len(choice.without)
            if len(chosen) >= MOST_KEPT or size > MOST_KEPT_MEMBERS:
                return choice
            self._size, chosen[request] = size, choice
        return chosen[request]

    def _choose(self, nodes: Nodes, request: MemberRequest) -> Chosen:
        known, key = self._addressed, (request.family, request.cidrs)
        candidates = known.get(key)
        if candidates is None:
            candidates = addressed(nodes, request.family, request.cidrs)
            if len(known) < MOST_ADDRESSED and self._kept[0] is nodes:
                known[key] = candidates
        return _chosen(candidates, self._index(nodes).select(request.selector))

    def _index(self, nodes: Nodes) -> LabelIndex:
        """Return the labels of these Nodes; another thread may ask for other ones."""
        known, index = self._labels
        if known is not nodes:
            index = LabelIndex(nodes)
            self._labels = (nodes, index)
        return index


def select(
    facts: Facts,
    reader: AnnotationReader,
    config: settings.LoadBalancer,
    choose: Choose,
) -> Chosen:
    """Choose the Nodes that the Service requests; report those without an address."""
    selector = _selector(reader, config)
    family = facts.ip_families[0] if facts.ip_families else IpFamily.IPV4
    request = MemberRequest(tuple(selector.items()), family, _cidrs(reader, config))
    chosen = choose(facts.nodes, request)
    if facts.nodes and selector and not (chosen.members or chosen.without):
        reader.problems.append(_unmatched(reader, selector, len(facts.nodes)))
    if chosen.without:
        reader.problems.append(_without_address(chosen.without, family, request.cidrs))
    return chosen


def address_of(node: Node, family: IpFamily, cidrs: Cidrs) -> str:
    """Return the Node's first internal, else external address of the family.

    cidrs: when given, only addresses in one of them count. Empty if there is none.
    """
    for kind in _KINDS:
        for address in node.addresses:
            if address.type == kind and _fits(address.address, family, cidrs):
                return address.address
    return ""


def _fits(text: str, family: IpFamily, cidrs: Cidrs) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.version != _VERSION[family]:
        return False
    return not cidrs or any(address in cidr for cidr in cidrs)


def _selector(
    reader: AnnotationReader, config: settings.LoadBalancer
) -> dict[str, str]:
    """Read "key=value, key"; no pair at all matches every Node.

    What no label can be is refused: it would match no Node, and all members go.
    """
    text = reader.text(keys.NODE_SELECTOR, config.node_selector)
    selector: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = (part.strip() for part in pair.partition("="))
        if not (label_values.is_label_key(key) and label_values.is_label_value(value)):
            allowed = (
                "key=value or key, separated by commas, each the key and the value of"
                f" a label; not one: {problems.quoted(pair)}"
            )
            reader.fatal(keys.NODE_SELECTOR, text, allowed)
            return {}
        selector[key] = value
    return selector


def _unmatched(
    reader: AnnotationReader, selector: Mapping[str, str], count: int
) -> Problem:
    shown = ",".join(f"{k}={v}" if v else k for k, v in selector.items())
    message = (
        f"{reader.where(keys.NODE_SELECTOR)}: {problems.quoted(shown)} matches none of"
        f" the {count} Nodes that may receive traffic, so that the load balancer has"
        " no members: must be labels of a Node"
    )
    return Problem(Reason.NO_NODES, message)


def _cidrs(reader: AnnotationReader, config: settings.LoadBalancer) -> Cidrs:
    text = reader.text(keys.MEMBER_CIDR)
    if not text:
        return tuple(config.member_cidr)
    networks: list[settings.Network] = []
    bad: list[str] = []
    parts = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    if len(parts) > keys.MOST_CIDRS:
        reader.fatal(keys.MEMBER_CIDR, text, f"at most {keys.MOST_CIDRS} CIDRs")
        return ()
    for part in parts:
        try:
            networks.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            bad.append(part)
    for part in bad[: keys.MOST_NAMED]:
        reader.fatal(keys.MEMBER_CIDR, part, "CIDRs, separated by commas")
    return tuple(networks)


def _without_address(names: Sequence[str], family: IpFamily, cidrs: Cidrs) -> Problem:
    shown = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    within = f" within {', '.join(map(str, cidrs))}" if cidrs else ""
    message = f"no {family} address{within} on {shown}{more}: ignored"
    return Problem(Reason.NO_ADDRESS, message)
