"""What `mooring lab` shows of a lab: programs, and Nodes beside their servers. Pure."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

import rich.box
import rich.table
import rich.text

from lib.lab.grounds import servers

Document = Mapping[str, object]
"""A Kubernetes object, decoded from JSON."""

LABEL_ZONE = "topology.kubernetes.io/zone"
LABEL_TYPE = "node.kubernetes.io/instance-type"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRow:
    """A Node, as far as the lab shows it.

    ready: status of the condition Ready ("True", "False", "Unknown"), or "".
    addresses: as "Type address", in the Node's order. taints: keys. pods: the
    podCIDR. is_routed: whether the cloud routes to it; None: not reported.
    """

    name: str
    uid: str = ""
    ready: str = ""
    provider_id: str = ""
    addresses: tuple[str, ...] = ()
    zone: str = ""
    type: str = ""
    taints: tuple[str, ...] = ()
    pods: str = ""
    is_routed: bool | None = None

    @property
    def initialised(self) -> bool:
        """Whether the cloud controller manager has done its first work on it."""
        inside = any(address.startswith("InternalIP ") for address in self.addresses)
        return bool(self.provider_id) and inside and UNINITIALIZED not in self.taints


class Health(enum.Enum):
    """The state of one program."""

    GOOD = "running"
    SICK = "runs, but does not answer"
    DOWN = "not running"


def health(*, runs: bool, answers: bool) -> Health:
    """Return the state of a program by what is known of it."""
    if not runs:
        return Health.DOWN
    return Health.GOOD if answers else Health.SICK


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramRow:
    """One program of the lab. port: 0 when it listens nowhere."""

    name: str
    health: Health
    port: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class PodRow:
    """The pod of a component. name: empty without a pod.

    state: "Ready", or the phase or the reason for which a container waits.
    """

    component: str
    name: str = ""
    account: str = ""
    node: str = ""
    state: str = ""
    restarts: int = 0

    @property
    def is_ready(self) -> bool:
        """Whether the pod is Ready."""
        return self.state == READY


READY = "Ready"


def pod(component: str, document: Document | None) -> PodRow:
    """Return the row of a component. document: its newest pod."""
    if document is None:
        return PodRow(component, state="NoPod")
    statuses = _rows(document, "status", "containerStatuses")
    waiting = [_text(row, "state", "waiting", "reason") for row in statuses]
    ready = any(
        _text(row, "type") == READY and _text(row, "status") == "True"
        for row in _rows(document, "status", "conditions")
    )
    phase = _text(document, "status", "phase")
    restarts = [_at(row, "restartCount") for row in statuses]
    return PodRow(
        component,
        _text(document, "metadata", "name"),
        _text(document, "spec", "serviceAccountName"),
        _text(document, "spec", "nodeName"),
        READY if ready else next(filter(None, waiting), phase),
        sum(count for count in restarts if isinstance(count, int)),
    )


def pods(rows: Sequence[PodRow]) -> rich.table.Table:
    """Show the pods of the components."""
    table = _table()
    for column in ("Component", "Pod", "ServiceAccount", "State", "Restarts"):
        table.add_column(column, overflow="fold")
    for row in rows:
        state = rich.text.Text(row.state, style="green" if row.is_ready else "red")
        table.add_row(row.component, row.name, row.account, state, str(row.restarts))
    return table


def _at(document: object, *path: str) -> object:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _text(document: object, *path: str) -> str:
    value = _at(document, *path)
    return value if isinstance(value, str) else ""


def _rows(document: object, *path: str) -> Sequence[object]:
    value = _at(document, *path)
    return value if isinstance(value, list) else ()


def node(document: Document) -> NodeRow:
    """Parse a Node."""
    conditions = {
        _text(row, "type"): _text(row, "status")
        for row in _rows(document, "status", "conditions")
    }
    unavailable = conditions.get("NetworkUnavailable")
    return NodeRow(
        name=_text(document, "metadata", "name"),
        uid=_text(document, "metadata", "uid"),
        ready=conditions.get("Ready", ""),
        provider_id=_text(document, "spec", "providerID"),
        addresses=tuple(
            f"{_text(row, 'type')} {_text(row, 'address')}"
            for row in _rows(document, "status", "addresses")
        ),
        zone=_text(document, "metadata", "labels", LABEL_ZONE),
        type=_text(document, "metadata", "labels", LABEL_TYPE),
        taints=tuple(_text(row, "key") for row in _rows(document, "spec", "taints")),
        pods=_text(document, "spec", "podCIDR"),
        is_routed=None if unavailable is None else unavailable == "False",
    )


def short(taint: str) -> str:
    """Return the part of a taint's key that people read."""
    return taint.rpartition("/")[2]


def nodes(
    node_rows: Sequence[NodeRow], server_rows: Sequence[servers.Server], title: str = ""
) -> rich.table.Table:
    """Show every Node and every server, side by side where the names agree.

    Made for 80 columns: what belongs together is stacked, and ids are folded.
    """
    table = _table(title)
    table.add_column("Node", no_wrap=True)
    table.add_column("Server", no_wrap=True)
    for column in ("Provider ID", "Addresses"):
        table.add_column(column, overflow="fold", min_width=12)
    for column in ("Zone", "Taints"):
        table.add_column(column, overflow="fold")
    by_name = {row.name: row for row in node_rows}
    status = {row.name: row.status for row in server_rows}
    for name in sorted({*by_name, *status}):
        row = by_name.get(name)
        cell, *rest = _cells(row) if row else (f"{name}\nno Node",)
        table.add_row(cell, status.get(name, "none"), *rest, style=_style(row))
    return table


_READY = {"True": "Ready", "False": "NotReady", "Unknown": "NotReady (Unknown)"}


def _cells(node_row: NodeRow) -> tuple[str, ...]:
    # The host name is in the first column already.
    addresses = [
        row for row in node_row.addresses if row != f"Hostname {node_row.name}"
    ]
    if node_row.is_routed is not None:
        state = "routed" if node_row.is_routed else "not routed"
        addresses.append(f"Pods {node_row.pods} {state}")
    return (
        f"{node_row.name}\n{_READY.get(node_row.ready, 'no status')}",
        node_row.provider_id,
        "\n".join(addresses),
        "\n".join(word for word in (node_row.zone, node_row.type) if word),
        "\n".join(dict.fromkeys(short(key) for key in node_row.taints)),
    )


def _style(node_row: NodeRow | None) -> str:
    if node_row is None:
        return "dim"
    if SHUTDOWN in node_row.taints or node_row.ready != "True":
        return "yellow"
    return "green" if node_row.initialised else ""


def _table(title: str = "") -> rich.table.Table:
    return rich.table.Table(
        title=title or None,
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def programs(program_rows: Sequence[ProgramRow]) -> rich.table.Table:
    """Show the programs of the lab."""
    table = _table()
    for column in ("Program", "Port", "State"):
        table.add_column(column)
    colours = {Health.GOOD: "green", Health.SICK: "yellow", Health.DOWN: "red"}
    for row in program_rows:
        state = rich.text.Text(row.health.value, style=colours[row.health])
        table.add_row(row.name, str(row.port or ""), state)
    return table


def steps(
    rows: Sequence[tuple[str, str, float | None]], title: str = ""
) -> rich.table.Table:
    """Show steps: what is done, the evidence of its end, seconds; in their order.

    Evidence is empty for a step that is not complete, seconds None before it begins.
    """
    table = _table(title)
    table.add_column("Step", no_wrap=True)
    table.add_column("Seconds", justify="right")
    table.add_column("Observed", overflow="fold")
    for step, evidence, seconds in rows:
        took = "" if seconds is None else f"{seconds:.1f}"
        style = "green" if evidence else "dim" if seconds is None else "yellow"
        state = evidence or ("" if seconds is None else "waiting")
        table.add_row(step, took, state, style=style)
    return table


def sizes(parts: Mapping[str, int]) -> rich.table.Table:
    """Show the size of the caches: bytes by part."""
    table = _table()
    table.show_footer = True
    table.add_column("Cache", footer="all")
    table.add_column("Size", justify="right", footer=size(sum(parts.values())))
    for part, size_bytes in sorted(parts.items()):
        table.add_row(part, size(size_bytes))
    return table


def size(size_bytes: int) -> str:
    """Write a number of bytes as people read it."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
