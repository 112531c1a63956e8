"""`mooring lab status`: programs of the lab, its Nodes, and their servers."""

import dataclasses
from collections.abc import Iterable

import click
import rich.console

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.grounds import grounds
from lib.lab.run import program_logs
from lib.lab.status import table
from lib.lab.whole import chart_release, demo, parts, whole
from mooring.commands import documents, edge, lab_show, outputs

_PROGRAM_COLUMNS = (
    outputs.Column("Program"),
    outputs.Column("Port"),
    outputs.Column("State"),
    outputs.Column("Log"),
)
_POD_COLUMNS = tuple(
    outputs.Column(title)
    for title in ("Component", "Pod", "ServiceAccount", "Node", "State", "Restarts")
)
_REQUEST_COLUMNS = (outputs.Column("Request"), outputs.Column("Count"))
_STATES = {
    table.Health.GOOD: "Running",
    table.Health.SICK: "NotAnswering",
    table.Health.DOWN: "NotRunning",
}
_NODE_COLUMNS = tuple(
    outputs.Column(title)
    for title in (
        *("Node", "Ready", "Server", "Provider ID", "Addresses", "Zone", "Type"),
        *("Taints", "Pods", "Routed"),
    )
)


def show(where: places.Places, output: str) -> bool:
    """Show the programs, then the Nodes; report whether all programs run.

    output: one of `outputs.FORMATS`.

    Raises:
        LabError: no lab was started here.
    """
    lab = lab_show.current(where)
    rows = whole.status(lab)
    view, pods, problem = _view(lab)
    document = _document(lab, rows, pods, view, problem)
    names = [outputs.name("program", row.name) for row in rows]
    names += [outputs.name("pod", row.name) for row in pods if row.name]
    names += [outputs.name("node", node["node"]) for node in document["nodes"]]
    if not outputs.document(output, document, names):
        _tables(output, document, rows, pods, view)
        _requests(output, lab)
    if problem and output not in (outputs.JSON, outputs.YAML):
        rich.console.Console(stderr=True).print(
            f"Nodes and servers cannot be shown: {problem}", markup=False
        )
    for row in rows:
        if row.health is table.Health.DOWN:
            click.echo(_remedy(row.name), err=True)
    is_good = all(row.health is table.Health.GOOD for row in rows)
    return not problem and is_good and all(row.is_ready for row in pods)


def _remedy(program: str) -> str:
    tool = edge.spoken()
    return (
        f"{program} does not run: `{tool} lab logs {program}` shows why,"
        f" `{tool} lab up` starts it again"
    )


def programs(
    where: places.Places, rows: Iterable[table.ProgramRow]
) -> list[documents.LabProgram]:
    """Return the programs as a document has them."""
    return [
        {
            "program": row.name,
            "port": row.port or None,
            "state": _STATES[row.health],
            "log": str(program_logs.path(where, row.name)),
        }
        for row in rows
    ]


def _view(lab: parts.Lab) -> tuple[demo.View, tuple[table.PodRow, ...], str]:
    try:
        return whole.look(lab)(), chart_release.status(lab), ""
    except (errors.LabError, kube_errors.KubeError) as error:
        return demo.View((), ()), (), str(error)


def _document(
    lab: parts.Lab,
    rows: tuple[table.ProgramRow, ...],
    pods: tuple[table.PodRow, ...],
    view: demo.View,
    problem: str,
) -> documents.LabStatus:
    servers = {server.name: server.status for server in view.cloud_servers}
    nodes = {node.name: node for node in view.nodes}
    return {
        "programs": programs(lab.where, rows),
        "pods": [
            {
                "component": row.component,
                "pod": row.name,
                "service_account": row.account,
                "node": row.node,
                "state": row.state,
                "restarts": row.restarts,
            }
            for row in pods
        ],
        "nodes": [
            _node(nodes.get(name, table.NodeRow(name)), servers.get(name, ""))
            for name in sorted({*servers, *nodes})
        ],
        "error": problem,
    }


def _node(row: table.NodeRow, server: str) -> documents.LabNode:
    return {
        "node": row.name,
        "ready": row.ready,
        "server": server,
        "provider_id": row.provider_id,
        "addresses": list(row.addresses),
        "zone": row.zone,
        "type": row.type,
        "taints": list(row.taints),
        "pods": row.pods,
        "is_routed": row.is_routed,
    }


def _tables(
    output: str,
    document: documents.LabStatus,
    rows: tuple[table.ProgramRow, ...],
    pods: tuple[table.PodRow, ...],
    view: demo.View,
) -> None:
    if output == outputs.WIDE:
        programs = [
            (row["program"], str(row["port"] or ""), row["state"], row["log"])
            for row in document["programs"]
        ]
        outputs.print_table(output, _PROGRAM_COLUMNS, programs)
        if pods:
            cells_of_pods = [tuple(map(str, dataclasses.astuple(row))) for row in pods]
            outputs.print_table(output, _POD_COLUMNS, cells_of_pods)
        cells = map(_cells, document["nodes"])
        outputs.print_table(output, _NODE_COLUMNS, cells)
        return
    console = rich.console.Console()
    outputs.show(console, table.programs(rows))
    if pods:
        outputs.show(console, table.pods(pods))
    outputs.show(console, table.nodes(view.nodes, view.cloud_servers))


def _requests(output: str, lab: parts.Lab) -> None:
    """Show the requests that the cloud has counted by kind, where it counts them."""
    if not isinstance(lab.grounds, grounds.Counting):
        return
    counts = lab.grounds.requests(lab.where)
    cells = [(kind, str(count)) for kind, count in sorted(counts.items())]
    outputs.print_table(output, _REQUEST_COLUMNS, cells)


def _cells(node: documents.LabNode) -> tuple[str, ...]:
    is_routed = node["is_routed"]
    return (
        node["node"],
        node["ready"],
        node["server"],
        node["provider_id"],
        ", ".join(node["addresses"]),
        node["zone"],
        node["type"],
        ", ".join(node["taints"]),
        node["pods"],
        "" if is_routed is None else str(is_routed),
    )
