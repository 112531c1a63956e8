import datetime
import json

import pytest

from lib.lab.grounds import servers
from lib.lab.kube import simulated_kubelet

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param({}, {"a": "1"}, ["Register a", "Beat a"], id="booted"),
        pytest.param({"a": "1"}, {"a": "1"}, ["Beat a"], id="runs on"),
        pytest.param({"a": "1"}, {}, [], id="stopped or gone: silence"),
        pytest.param({"a": "1"}, {"a": "2"}, ["Register a", "Beat a"], id="another"),
        pytest.param(
            {"a": "1"},
            {"a": "1", "b": "2"},
            ["Register b", "Beat a", "Beat b"],
            id="two",
        ),
    ],
)
def test_a_kubelet_registers_when_its_machine_boots(
    before: simulated_kubelet.Running,
    now: simulated_kubelet.Running,
    expected: list[str],
) -> None:
    """Booting registers, running beats, and nothing else does anything."""
    actions = [
        f"{type(action).__name__} {action.name}"
        for action in simulated_kubelet.decide(before, now)
    ]
    assert actions == expected


def test_only_active_servers_of_the_lab_run() -> None:
    """A stopped server, one being built and somebody else's have no kubelet."""
    listed = [
        servers.Server("1", "a", "ACTIVE"),
        servers.Server("2", "b", "SHUTOFF"),
        servers.Server("3", "c", "BUILD"),
        servers.Server("4", "foreign", "ACTIVE"),
    ]
    assert simulated_kubelet.running(["a", "b", "c"], listed) == {"a": "1"}


def test_node_is_registered_as_a_kubelet_does_it() -> None:
    """Tainted, without a provider ID, with nothing but its host name as address."""
    body = json.loads(json.dumps(simulated_kubelet.manifest("a", NOW)))
    assert body["spec"] == {
        "taints": [
            {
                "key": "node.cloudprovider.kubernetes.io/uninitialized",
                "value": "true",
                "effect": "NoSchedule",
            }
        ]
    }
    assert body["metadata"]["labels"]["kubernetes.io/hostname"] == "a"
    assert body["status"]["addresses"] == [{"type": "Hostname", "address": "a"}]


def test_a_condition_that_stays_keeps_its_transition_time() -> None:
    """Only what turned gets a new time; every heartbeat is now."""
    before = [
        {"type": "Ready", "status": "Unknown", "lastTransitionTime": "old"},
        {"type": "DiskPressure", "status": "False", "lastTransitionTime": "old"},
    ]
    rows = {row["type"]: row for row in simulated_kubelet.conditions(NOW, before)}
    assert rows["Ready"]["status"] == "True"
    assert rows["Ready"]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert rows["DiskPressure"]["lastTransitionTime"] == "old"
    assert {row["lastHeartbeatTime"] for row in rows.values()} == {
        "2026-01-02T03:04:05Z"
    }


def test_lease_belongs_to_its_node() -> None:
    """It goes with the Node, and its time has microseconds."""
    body = json.loads(json.dumps(simulated_kubelet.lease("a", "u1", NOW)))
    assert body["metadata"]["ownerReferences"][0]["uid"] == "u1"
    assert body["spec"]["renewTime"] == "2026-01-02T03:04:05.000678Z"
