"""What the nodes flow is wired to: a cloud that goes, comes, or is replaced."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lib.ccm import node_controllers, options, parts
from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import (
    Address,
    AddressType,
    Instance,
    InstanceId,
    InstanceRef,
    Phase,
)
from lib.kube import nodes as kube_nodes
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.nodes import model
from lib.process import flags
from lib.reconcile import loops

WANTED = options.read(
    flags.parse(
        options.FLAGS,
        [
            "--cloud-provider=openstack",
            "--node-monitor-period=1h",
            "--node-status-update-frequency=1h",
        ],
    ),
    "openstack",
)
NODE: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1"},
    "spec": {
        "taints": [{"key": kube_nodes.UNINITIALIZED_TAINT, "effect": "NoSchedule"}]
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
REFUSED = errors.Unauthenticated("refused", operation="list servers")
INSTANCE = Instance(
    InstanceId("id-1"),
    "node-1",
    Phase.RUNNING,
    fake_instances.provider_id("id-1"),
    (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
    "m1.small",
    "az1",
    "RegionOne",
)


ABSENT_S = 0.5
"""What does not happen within this time does not happen: ten times the wait for a batch
that conftest.py sets."""


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


MakeParts = Callable[..., parts.Parts]


class Reports:
    """Changes of a cloud: `report` calls all subscribers."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[InstanceRef], None]] = []

    def subscribe(self, fn: Callable[[InstanceRef], None]) -> None:
        """See the protocol."""
        self._subscribers.append(fn)

    def report(self, ref: InstanceRef) -> int:
        """Report a change; return the number of those who heard of it."""
        for fn in self._subscribers:
            fn(ref)
        return len(self._subscribers)


class Running:
    """Both controllers over fakes, in threads of their own."""

    def __init__(self, make_parts: MakeParts, *faults: errors.CloudError) -> None:
        self.api = fake_api.FakeApi()
        self.api.put(resources.NODES, NODE)
        self.instances = fake_instances.FakeInstances(faults=list(faults))
        self.instances.put(INSTANCE)
        self._stop = threading.Event()
        self._loops = loops.Loops(self._stop)
        shared = make_parts(self.api, self._loops)
        self.reports = Reports()
        self.nodes = node_controllers.NodeControllers(
            lambda: self.instances,
            shared,
            WANTED,
            model.NodeSettings(),
            lambda: self.reports,
        )
        self.nodes.watch(self._loops)
        self._loops.start("watch nodes", shared.nodes.run)
        self.nodes.start(self._loops)

    @property
    def is_new(self) -> bool:
        node = self.nodes.nodes.get("node-1")
        return node is not None and node.has_taint(kube_nodes.UNINITIALIZED_TAINT)

    def said_of(self, kind: str) -> list[tuple[object, ...]]:
        """Return type, reason, message, object and namespace of Events about a kind."""
        events: list[tuple[object, ...]] = []
        for document in self.api.all(resources.EVENTS):
            event: dict[str, Any] = dict(document)
            about, meta = dict(event["involvedObject"]), dict(event["metadata"])
            if about["kind"] == kind:
                words = (event["type"], event["reason"], event["message"])
                events.append((*words, about["name"], meta["namespace"]))
        return events

    def end(self) -> None:
        self._stop.set()
        assert self._loops.join(10) == ()


@pytest.fixture()
def run(make_parts: MakeParts) -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:

        def begin(*faults: errors.CloudError) -> Running:
            running = Running(make_parts, *faults)
            stack.callback(running.end)
            return running

        yield begin


def test_a_node_that_waits_a_minute_for_good_credentials_is_initialised_at_once(
    run: Callable[..., Running],
) -> None:
    """Refused credentials are tried again slowly; a new file ends the wait."""
    running = run(REFUSED, REFUSED)  # the first one is the greeting at the start
    until(lambda: not running.instances.faults)
    time.sleep(ABSENT_S)
    assert running.is_new, "it waits, or this test shows nothing"
    running.nodes.look_again()
    until(lambda: not running.is_new)


def test_a_cloud_that_goes_and_comes_is_told_on_the_lease(
    run: Callable[..., Running],
) -> None:
    """Once each, whatever the number of Nodes and of tries."""
    running = run(REFUSED, REFUSED, REFUSED)
    until(lambda: len(running.said_of("Lease")) == 1)
    running.nodes.look_again()
    until(lambda: not running.instances.faults)
    running.nodes.look_again()
    until(lambda: len(running.said_of("Lease")) == 2)
    lease = ("cloud-controller-manager", "kube-system")
    assert running.said_of("Lease") == [
        (
            "Warning",
            "CredentialsRejected",
            "list servers: refused; correct the credentials",
            *lease,
        ),
        (
            "Normal",
            "CloudAvailable",
            "The instances of the Nodes can be read again",
            *lease,
        ),
    ]


def addresses(running: Running) -> set[str]:
    """Return the addresses that the Node shows."""
    node = running.nodes.nodes.get("node-1")
    return {a.address for a in node.status.addresses} if node is not None else set()


def settled(running: Running) -> int:
    """Wait until no call of the cloud comes; return the number of all."""
    before, end = -1, time.monotonic() + 10
    while (now := len(running.instances.calls)) != before:
        assert time.monotonic() < end, "calls go on without a change"
        before = now
        time.sleep(ABSENT_S)
    return now


def renumber(running: Running, ip_address: str) -> None:
    address = Address(AddressType.INTERNAL_IP, ip_address)
    running.instances.put(dataclasses.replace(INSTANCE, addresses=(address,)))


@pytest.mark.parametrize(
    "ref",
    [
        InstanceRef("node-1", INSTANCE.provider_id),
        InstanceRef("node-1"),
        InstanceRef("another", INSTANCE.provider_id),
    ],
    ids=["both", "by name", "by provider ID"],
)
def test_a_reported_change_reaches_its_node_without_a_period(
    run: Callable[..., Running], ref: InstanceRef
) -> None:
    """All periods are an hour; a report of another instance changes nothing."""
    running = run()
    until(lambda: not running.is_new)
    before = settled(running)
    renumber(running, "10.0.0.2")
    running.reports.report(InstanceRef("other", "openstack:///other"))
    time.sleep(ABSENT_S)
    assert len(running.instances.calls) == before
    if not ref.provider_id:
        # A name alone is of a Node without provider ID.
        assert running.reports.report(ref) == 1
        time.sleep(ABSENT_S)
        assert addresses(running) == {"10.0.0.1"}
        return
    assert running.reports.report(ref) == 1
    until(lambda: addresses(running) == {"10.0.0.2"})


def test_the_reports_of_a_cloud_that_was_opened_again_are_heard(
    run: Callable[..., Running],
) -> None:
    """Once, also after several complete reconciliations."""
    running = run()
    until(lambda: not running.is_new)
    running.reports = Reports()
    for _ in range(2):
        running.nodes.look_again()
    renumber(running, "10.0.0.3")
    assert running.reports.report(InstanceRef("node-1", INSTANCE.provider_id)) == 1
    until(lambda: addresses(running) == {"10.0.0.3"})
