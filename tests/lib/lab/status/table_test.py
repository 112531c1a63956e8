import io

import pytest
import rich.console
import rich.table

from lib.lab.grounds import servers
from lib.lab.status import table

DOCUMENT: dict[str, object] = {
    "metadata": {
        "name": "mooring-lab-1",
        "uid": "u1",
        "labels": {
            "topology.kubernetes.io/zone": "az1",
            "node.kubernetes.io/instance-type": "m1.tiny",
        },
    },
    "spec": {
        "providerID": "openstack:///4711",
        "taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}],
    },
    "status": {
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.5"},
            {"type": "Hostname", "address": "mooring-lab-1"},
        ],
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "Unknown"},
        ],
    },
}
NODE = table.node(DOCUMENT)
INSIDE = ("InternalIP 10.0.0.5",)


def drawn(shown: rich.table.Table, width: int = 160) -> str:
    console = rich.console.Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


def line(text: str, word: str) -> str:
    return next(row for row in text.splitlines() if word in row)


def test_node_is_parsed_whole() -> None:
    """Everything the table shows is read from where Kubernetes keeps it."""
    assert (
        table.NodeRow(
            name="mooring-lab-1",
            uid="u1",
            ready="Unknown",
            provider_id="openstack:///4711",
            addresses=("InternalIP 10.0.0.5", "Hostname mooring-lab-1"),
            zone="az1",
            type="m1.tiny",
            taints=("node.kubernetes.io/unreachable",),
        )
        == NODE
    )


@pytest.mark.parametrize(
    ("status", "shown"),
    [("False", "10.244.1.0/24 routed"), ("True", "10.244.1.0/24 not routed"), ("", "")],
)
def test_routes_to_pods_are_shown(status: str, shown: str) -> None:
    """By the condition that a route controller writes; nothing without it."""
    condition = {"type": "NetworkUnavailable", "status": status}
    node = table.node(
        {
            "metadata": {"name": "n"},
            "spec": {"podCIDR": "10.244.1.0/24"},
            "status": {"conditions": [condition] if status else []},
        }
    )
    text = " ".join(drawn(table.nodes([node], [])).split())
    assert ("Pods" in text) == bool(shown)
    assert shown in text


def test_a_bare_node_is_parsed_too() -> None:
    """A Node that has just been made lacks nearly everything."""
    bare = table.node({"metadata": {"name": "n"}, "spec": {}})
    assert bare == table.NodeRow("n")
    assert not bare.initialised


@pytest.mark.parametrize(
    ("provider_id", "taints", "addresses", "initialised"),
    [
        ("", (table.UNINITIALIZED,), INSIDE, False),
        ("openstack:///1", (table.UNINITIALIZED,), INSIDE, False),
        ("", (), INSIDE, False),
        ("openstack:///1", (), ("Hostname n",), False),
        ("openstack:///1", (), INSIDE, True),
        ("openstack:///1", (table.SHUTDOWN,), INSIDE, True),
    ],
)
def test_initialised_needs_id_and_no_taint(
    provider_id: str,
    taints: tuple[str, ...],
    addresses: tuple[str, ...],
    initialised: bool,
) -> None:
    """A provider ID and an address, without the taint: the work of openstack-ccm."""
    row = table.NodeRow(
        "n", provider_id=provider_id, taints=taints, addresses=addresses
    )
    assert row.initialised is initialised


def test_node_and_server_of_one_name_share_a_row() -> None:
    """The status of the server stands beside its Node."""
    text = drawn(
        table.nodes([NODE], [servers.Server("4711", "mooring-lab-1", "SHUTOFF")])
    )
    row = line(text, "mooring-lab-1")
    for word in ("SHUTOFF", "openstack:///4711", "az1"):
        assert word in row
    assert "NotReady (Unknown)" in text
    assert "m1.tiny" in text
    assert "unreachable" in text
    assert "InternalIP 10.0.0.5" in text


def test_node_without_server_and_server_without_node_are_both_shown() -> None:
    """Nothing that is only on one side is hidden."""
    text = drawn(table.nodes([NODE], [servers.Server("1", "mooring-lab-2", "ACTIVE")]))
    assert "none" in line(text, "mooring-lab-1")
    assert "mooring-lab-2" in line(text, "ACTIVE")
    assert "no Node" in text


def test_programs_are_shown_with_port_and_state() -> None:
    """Each program has a row; one without a port shows none."""
    text = drawn(
        table.programs(
            [
                table.ProgramRow("etcd", table.health(runs=True, answers=True), 20001),
                table.ProgramRow("nova", table.health(runs=True, answers=False), 20011),
                table.ProgramRow("kubelets", table.health(runs=False, answers=True)),
            ]
        )
    )
    assert line(text, "etcd").split() == ["etcd", "20001", "running"]
    assert "does not answer" in line(text, "nova")
    assert "not running" in line(text, "kubelets")
    assert " 0 " not in text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (2048, "2 KiB"),
        (5 * 1024**2, "5 MiB"),
        (3 * 1024**3 // 2, "1.5 GiB"),
    ],
)
def test_sizes_are_readable(size_bytes: int, text: str) -> None:
    """Bytes are written in the unit that people would choose."""
    assert table.size(size_bytes) == text


def test_sizes_end_in_a_sum() -> None:
    """The last line says what all parts weigh together."""
    text = drawn(table.sizes({"go": 1024, "pex": 1024}))
    assert "2 KiB" in line(text, "all")


def test_every_column_keeps_some_room_on_80_columns() -> None:
    """Nothing vanishes from a full row, however narrow it gets."""
    full = table.NodeRow(
        "mooring-lab-node",
        ready="True",
        provider_id="openstack:///7b3baceb-e985-41a4-907f-1b70a21c9b00",
        addresses=("InternalIP 10.42.2.163", "ExternalIP 198.18.2.149"),
        zone="az1",
        type="m1.tiny",
        taints=(table.UNINITIALIZED,),
    )
    listed = [servers.Server("1", full.name, "SHUTOFF")]
    text = drawn(table.nodes([full], listed), width=80)
    joined = "".join(text.split())
    for word in ("openstack", "10.42.2", "198.18", "az1", "SHUTOFF", "uninitialized"):
        assert word in joined


def test_steps_show_what_is_waited_for() -> None:
    """Complete, waited for, and not begun; the latter without seconds."""
    rows = [
        ("attached", "/dev/loop1", 1.25),
        ("staged", "", 3.0),
        ("deleted", "", None),
    ]
    lines = [line.split() for line in drawn(table.steps(rows)).splitlines()]
    assert ["attached", "1.2", "/dev/loop1"] in lines
    assert ["staged", "3.0", "waiting"] in lines
    assert ["deleted"] in lines


POD: dict[str, object] = {
    "metadata": {"name": "csi-node-x7k2p"},
    "spec": {"serviceAccountName": "csi-node", "nodeName": "mooring-lab-node"},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"restartCount": 1, "state": {"running": {}}},
            {"restartCount": 2, "state": {"running": {}}},
        ],
    },
}


def with_status(**parts: object) -> dict[str, object]:
    return {**POD, "status": parts}


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (POD, "Ready"),
        (None, "NoPod"),
        (with_status(phase="Pending"), "Pending"),
        (
            with_status(
                phase="Running", conditions=[{"type": "Ready", "status": "False"}]
            ),
            "Running",
        ),
        (
            with_status(
                phase="Pending",
                containerStatuses=[
                    {"state": {"running": {}}},
                    {"state": {"waiting": {"reason": "ErrImageNeverPull"}}},
                ],
            ),
            "ErrImageNeverPull",
        ),
    ],
)
def test_a_pod_is_ready_or_its_reason_is_shown(
    document: dict[str, object] | None, state: str
) -> None:
    row = table.pod("csi-node", document)
    assert (row.component, row.state, row.is_ready) == (
        "csi-node",
        state,
        state == "Ready",
    )


def test_the_table_of_pods_has_account_and_restarts() -> None:
    text = drawn(table.pods([table.pod("csi-node", POD), table.pod("x", None)]))
    (line,) = (row for row in text.splitlines() if "csi-node-x7k2p" in row)
    assert line.split() == ["csi-node", "csi-node-x7k2p", "csi-node", "Ready", "3"]
    assert "NoPod" in text
