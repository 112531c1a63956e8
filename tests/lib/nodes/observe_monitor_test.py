"""What is read of Nodes that are not Ready: how often, and at which cost."""

import datetime

import pytest
import structlog.testing

from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import nodes as kube_nodes
from lib.kube import resources, store
from lib.kube.fake import api as fake_api
from lib.nodes import decide, flow, model, observe
from lib.reconcile import runner

T0 = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LIVENESS = frozenset({model.Topic.LIVENESS})
SHUT = {"key": kube_nodes.SHUTDOWN_TAINT, "effect": "NoSchedule"}


def put(
    api: fake_api.FakeApi,
    name: str,
    *,
    ready: str = "Unknown",
    since: datetime.datetime | None = T0,
    taints: tuple[dict[str, str], ...] = (),
    provider_id: str = "",
) -> None:
    condition = {"type": "Ready", "status": ready}
    if since is not None:
        condition["lastTransitionTime"] = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    api.put(
        resources.NODES,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {
                "providerID": provider_id or fake_instances.provider_id(name),
                "taints": list(taints),
            },
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [condition],
            },
        },
    )


def followed(api: fake_api.FakeApi) -> store.Store[kube_nodes.Node]:
    nodes = store.Store(api, resources.NODES, kube_nodes.Node)
    nodes.relist()
    return nodes


def looked_at(api: fake_api.FakeApi, seconds: int) -> list[int]:
    """Return the seconds after T0 at which Nodes come in, of a look every 5 s."""
    counts: list[int] = []
    clock = [0]

    def now() -> datetime.datetime:
        return T0 + datetime.timedelta(seconds=clock[0])

    def add(name: str, topic: model.Topic) -> None:
        counts.append(clock[0])

    monitor = flow.LifecycleMonitor(followed(api), add, now)
    for clock[0] in range(0, seconds, 5):
        monitor.look()
    return counts


def test_a_node_comes_every_5_s_for_5_minutes_then_every_60_s() -> None:
    api = fake_api.FakeApi()
    put(api, "node")
    assert looked_at(api, 600) == [*range(0, 300, 5), 300, 360, 420, 480, 540]


def test_a_process_that_begins_looks_at_once() -> None:
    """However long the Node has not been Ready."""
    api = fake_api.FakeApi()
    put(api, "node", since=T0 - datetime.timedelta(hours=1, seconds=-7))
    assert looked_at(api, 130) == [0, 10, 70]


@pytest.mark.parametrize(
    "since",
    [None, T0 + datetime.timedelta(hours=1)],
    ids=["unsaid", "in the future"],
)
def test_a_time_that_says_nothing_makes_it_come_each_time(
    since: datetime.datetime | None,
) -> None:
    api = fake_api.FakeApi()
    put(api, "node", since=since)
    assert looked_at(api, 20) == [0, 5, 10, 15]


def test_a_ready_node_comes_only_while_it_is_tainted() -> None:
    api = fake_api.FakeApi()
    put(api, "well", ready="True")
    assert looked_at(api, 20) == []
    put(api, "back", ready="True", taints=(SHUT,))
    assert looked_at(api, 20) == [0, 5, 10, 15]


def calls(size: int, not_ready: int, topics: frozenset[model.Topic]) -> list[str]:
    """Return the cloud calls of one pass over the Nodes that are not Ready."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    for number in range(size):
        name = f"n{number}"
        put(api, name, ready="Unknown" if number < not_ready else "True")
        cloud.put(
            Instance(
                InstanceId(name),
                name,
                Phase.RUNNING,
                fake_instances.provider_id(name),
                (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
            )
        )
    nodes = followed(api)
    observer = observe.NodeObserver(nodes, api, lambda: cloud, model.NodeSettings())
    observer.observe([(f"n{number}", topics) for number in range(not_ready)])
    return cloud.calls


@pytest.mark.parametrize(
    ("size", "not_ready", "singly"),
    [
        (1000, 1, True),
        (1000, 50, True),
        (1000, 51, False),
        (1000, 200, False),
        (100, 20, True),
        (100, 21, False),
        (3, 3, True),
    ],
)
def test_few_are_read_singly_and_more_by_one_list(
    size: int, not_ready: int, singly: bool
) -> None:
    """One of 1,000 costs one call, and so do 200 of them."""
    expected = ["read instance"] * not_ready if singly else ["list instances"]
    assert calls(size, not_ready, LIVENESS) == expected


def test_a_pass_that_needs_addresses_takes_the_list_for_all() -> None:
    topics = LIVENESS | {model.Topic.ADDRESSES}
    assert calls(1000, 1, topics) == ["list instances"]


def test_the_heart_beats_before_each_direct_look() -> None:
    """Many that nobody answers in time must not look like a loop that is dead."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    names = [f"n{number}" for number in range(3)]
    for name in names:
        put(api, name)
    events: list[str] = []
    cloud.before_call = events.append
    clocks = runner.Clocks(beat=lambda: events.append("beat"))
    put(api, "well", ready="True")
    well = fake_instances.provider_id("well")
    cloud.put(Instance(InstanceId("well"), "well", Phase.RUNNING, well, ()))
    observer = observe.NodeObserver(
        followed(api), api, lambda: cloud, model.NodeSettings(), clocks
    )
    observer.observe([(name, LIVENESS) for name in names])
    looks = ["read instance"] * (len(names) + 1)
    assert events == looks + ["beat", "get instance"] * len(names)


def test_an_outage_is_not_over_because_a_foreign_node_was_looked_at() -> None:
    """It begins and ends once in the log, whoever else is in the cluster."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    put(api, "ours")
    put(api, "theirs", provider_id="static://theirs")
    observer = observe.NodeObserver(
        followed(api), api, lambda: cloud, model.NodeSettings()
    )
    away = errors.Unavailable("away", operation="list servers")
    cloud.faults += [away, away]
    with structlog.testing.capture_logs() as logs:
        for name in ("ours", "theirs", "ours", "ours"):
            observer.observe([(name, LIVENESS)])
    assert [log["event"] for log in logs] == [
        "instances cannot be read",
        "instances can be read again",
    ]


@pytest.mark.parametrize(
    ("owner", "actions"),
    [("static://theirs", []), (fake_instances.provider_id("ours"), ["SetLabels"])],
)
def test_labels_of_another_provider_s_nodes_are_never_written(
    owner: str, actions: list[str]
) -> None:
    """Whose a Node is comes from its observation, made before labels are compared."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    cloud.put(Instance(InstanceId("ours"), "ours", Phase.RUNNING, owner))
    document = {
        "metadata": {
            "name": "node",
            "labels": {"failure-domain.beta.kubernetes.io/zone": "az1"},
        },
        "spec": {"providerID": owner},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    api.put(resources.NODES, document)
    observer = observe.NodeObserver(
        followed(api), api, lambda: cloud, model.NodeSettings()
    )
    snapshot = observer.observe([("node", frozenset({model.Topic.SYNC}))])
    outcome = decide.decide(snapshot["node"], model.NodeSettings())
    assert [type(action).__name__ for action in outcome.actions] == actions
