"""What the Nodes of a cluster ask for: their podCIDRs, validated. Pure."""

import datetime
import functools
import ipaddress
from collections.abc import Iterable, Sequence

from lib.cloud import routes
from lib.cloud.model import Address, AddressType
from lib.cloud.routes import Reason
from lib.cloud.steps import Problem
from lib.kube.nodes import UNINITIALIZED_TAINT, Node
from lib.routes.model import Desired

ALLOCATED_S = 60.0
"""A Node that has no podCIDR for this long is reported."""
_TYPES = frozenset(AddressType)

Cidr = ipaddress.IPv4Network | ipaddress.IPv6Network


@functools.lru_cache(maxsize=20_000)
def parse(text: str) -> Cidr | None:
    """Return a CIDR; None for any other text, and for one with host bits."""
    try:
        return ipaddress.ip_network(text) if "/" in text else None
    except ValueError:
        return None


class _Accepted:
    """podCIDRs that are served, with their Nodes; finds one that overlaps."""

    def __init__(self) -> None:
        self._by_length: dict[tuple[int, int], dict[Cidr, str]] = {}

    def overlapping(self, cidr: Cidr) -> str:
        """Return the Node that has an overlapping CIDR; empty: none has."""
        for (version, length), owners in self._by_length.items():
            if version != cidr.version:
                continue
            if length <= cidr.prefixlen:
                owner = owners.get(cidr.supernet(new_prefix=length), "")
            else:
                owner = next((n for c, n in owners.items() if c.overlaps(cidr)), "")
            if owner:
                return owner
        return ""

    def add(self, cidr: Cidr, node: str) -> None:
        """Note that a Node is served."""
        key = (cidr.version, cidr.prefixlen)
        self._by_length.setdefault(key, {})[cidr] = node


def of(
    nodes: Iterable[Node], cluster_cidrs: Sequence[Cidr], now: datetime.datetime
) -> Desired:
    """Return what these Nodes ask for; the oldest of several with one podCIDR gets it.

    cluster_cidrs: of --cluster-cidr; empty: podCIDRs are not compared with it.
    """
    served: list[routes.Node] = []
    problems: dict[str, tuple[Problem, ...]] = {}
    present: dict[str, frozenset[str]] = {}
    unserved: set[str] = set()
    accepted = _Accepted()
    for node in sorted(nodes, key=_age):
        cidrs, wrong = _cidrs(node, cluster_cidrs, accepted)
        if not node.pod_cidrs and _is_late(node, now):
            problems[node.name] = (_NO_POD_CIDR,)
        if wrong:
            problems[node.name] = wrong
            unserved.add(node.name)
        present[node.name] = frozenset(
            str(parsed) for text in node.pod_cidrs if (parsed := parse(text))
        )
        if cidrs and _waits(node):
            unserved.add(node.name)
        elif cidrs:
            served.append(_served(node, cidrs))
    return Desired(tuple(served), present, problems, frozenset(unserved))


_NO_POD_CIDR = Problem(
    Reason.NO_POD_CIDR,
    f"spec.podCIDRs: not set for {ALLOCATED_S:.0f} s: kube-controller-manager must"
    " allocate it (--allocate-node-cidrs=true and --cluster-cidr)",
)


def _waits(node: Node) -> bool:
    """Report whether a new Node has no address yet, which is no problem of it.

    The flow of Nodes writes addresses and removes the taint, and reports if it cannot.
    """
    return node.has_taint(UNINITIALIZED_TAINT) and not any(
        address.type == AddressType.INTERNAL_IP for address in node.status.addresses
    )


def _age(node: Node) -> tuple[float, str]:
    created = node.metadata.creation_timestamp
    return (created.timestamp() if created is not None else 0.0, node.name)


def _is_late(node: Node, now: datetime.datetime) -> bool:
    created = node.metadata.creation_timestamp
    return created is not None and (now - created).total_seconds() >= ALLOCATED_S


def _cidrs(
    node: Node, cluster_cidrs: Sequence[Cidr], accepted: _Accepted
) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Return the podCIDRs of a Node that are valid, and what is wrong with others."""
    valid: list[str] = []
    wrong: list[Problem] = []
    for text in node.pod_cidrs:
        cidr = parse(text)
        problem = _judge(text, cidr, cluster_cidrs, accepted)
        if problem is not None:
            wrong.append(problem)
        elif cidr is not None:
            accepted.add(cidr, node.name)
            valid.append(str(cidr))
    return tuple(valid), tuple(wrong)


def _judge(
    text: str, cidr: Cidr | None, cluster_cidrs: Sequence[Cidr], accepted: _Accepted
) -> Problem | None:
    if cidr is None:
        message = f'spec.podCIDRs: invalid value "{text[:100]}": must be a CIDR'
        return Problem(Reason.INVALID_POD_CIDR, f"{message} without host bits")
    if cluster_cidrs and not any(_is_within(cidr, outer) for outer in cluster_cidrs):
        within = ", ".join(map(str, cluster_cidrs))
        message = f'spec.podCIDRs: invalid value "{cidr}": must be within'
        return Problem(Reason.OUTSIDE_CLUSTER, f"{message} --cluster-cidr {within}")
    if owner := accepted.overlapping(cidr):
        message = f'spec.podCIDRs: invalid value "{cidr}": must not overlap that of'
        return Problem(Reason.DUPLICATE, f"{message} Node {owner}, which is older")
    return None


def _is_within(cidr: Cidr, outer: Cidr) -> bool:
    if cidr.version != outer.version or cidr.prefixlen < outer.prefixlen:
        return False
    return cidr.supernet(new_prefix=outer.prefixlen) == outer


def _served(node: Node, cidrs: tuple[str, ...]) -> routes.Node:
    addresses = tuple(
        Address(AddressType(address.type), _canonical(address.address))
        for address in node.status.addresses
        if address.type in _TYPES
    )
    created = node.metadata.creation_timestamp
    return routes.Node(node.name, node.spec.provider_id, addresses, cidrs, created)


def _canonical(address: str) -> str:
    parsed = parse(f"{address}/128" if ":" in address else f"{address}/32")
    return address if parsed is None else str(parsed.network_address)
