"""The daemon of a provider: two replicas, a killed leader, a dry run, its metrics."""

import json
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import prometheus_client
import pytest

from lib.capi import flag_table, options, provider_daemon
from lib.capi.provider_parts import ProviderKinds
from lib.cloud import protocol
from lib.cloud.fake import machines as fake_cloud
from lib.daemon import reopening
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.machines import bootstrap
from lib.machines.kinds import ControlPlaneEndpoint
from lib.process import flags

LEASE = "70c82521.cluster.x-k8s.io"
ENDPOINT = ControlPlaneEndpoint("10.0.0.1", 6443)


class Changes:
    """Reports of a cloud, sent by the test."""

    def __init__(self) -> None:
        self.subscribers: list[Callable[[str], None]] = []

    def subscribe(self, fn: Callable[[str], None]) -> None:
        self.subscribers.append(fn)

    def report(self, uid: str) -> None:
        for fn in self.subscribers:
            fn(uid)


class Life:
    """One process of the provider over a fake API server and cloud."""

    def __init__(
        self, objects: Any, cloud: fake_cloud.FakeMachines, *words: str
    ) -> None:
        self.changes = Changes()
        opened = reopening.Opened(
            protocol.Cloud("fake", machines=cloud, machine_changes=self.changes),
            lambda: False,
        )
        arguments = [
            "--leader-election-namespace=here",
            "--health-probe-bind-address=0",
            "--metrics-bind-address=0",
            "--zones=a,b",
            *words,
        ]
        values = flags.parse(flag_table.FLAGS, arguments)
        kinds = ProviderKinds(objects.machine, objects.cluster, objects.template)
        program = provider_daemon.ProviderProgram(
            "fake-capi", "0", "fake", "cluster-1", kinds, lambda calls, read: opened
        )
        self.registry = prometheus_client.CollectorRegistry()
        self.stop = threading.Event()
        self.codes: list[int] = []
        provider = provider_daemon.ProviderDaemon(
            program,
            options.read(values, LEASE, pathlib.Path("/nonexistent")),
            self.registry,
            self.stop,
        )
        cloud_in_use = reopening.Reopening(lambda: opened)
        worked = threading.Event()
        self.thread = threading.Thread(
            target=lambda: self.codes.append(
                provider.run(cloud_in_use, objects.api, ENDPOINT, worked)
            ),
            daemon=True,
        )
        self.thread.start()

    def end(self) -> int:
        self.stop.set()
        self.thread.join(30)
        (code,) = self.codes
        return code

    def value(self, metric: str, /, **labels: str) -> float:
        sample = self.registry.get_sample_value(metric, labels)
        assert sample is not None, metric
        return sample


def until(what: str, condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.fixture()
def objects(make_objects: Callable[[fake_api.FakeApi], Any]) -> Any:
    return make_objects(fake_api.FakeApi())


@pytest.fixture()
def cloud(objects: Any) -> fake_cloud.FakeMachines:
    reader = bootstrap.Reader(objects.api)
    return fake_cloud.FakeMachines(time.monotonic, reader, locked_s=0.1, poll_s=0.02)


def holder(objects: Any) -> str:
    leases = objects.api.all(resources.LEASES)
    specs = [json.loads(json.dumps(lease))["spec"] for lease in leases]
    return "".join(str(spec.get("holderIdentity") or "") for spec in specs)


def test_two_replicas_create_one_instance_and_the_successor_deletes_it(
    objects: Any, cloud: fake_cloud.FakeMachines
) -> None:
    first, machine, cluster = Life(objects, cloud), objects.machine, objects.cluster
    until("a leader", lambda: holder(objects))
    second = Life(objects, cloud)
    objects.create("one")
    until("cluster", lambda: objects.ready(cluster.cluster, "infra") == "True")
    until("machine", lambda: objects.ready(machine.machine, "one") == "True")
    assert [vm.name for vm in cloud.vms.values()] == ["one"]
    # The metric follows the watch of what was just written.
    until("metric", lambda: first.value("mooring_machines", provisioned="true") == 1)
    assert first.value("mooring_machine_problem", reason="VMMissing") == 0
    assert first.value("leader_election_master_status", name=LEASE) == 1
    before = holder(objects)
    assert first.end() == 0
    until("a successor", lambda: holder(objects) not in ("", before))
    objects.delete(machine.machine, "one")
    objects.delete(cluster.cluster, "infra")
    until("the end", lambda: objects.get(cluster.cluster, "infra") is None)
    assert objects.get(machine.machine, "one") is None
    assert cloud.vms == {}
    assert second.end() == 0


def test_a_report_of_the_cloud_is_shown_without_a_period(
    objects: Any, cloud: fake_cloud.FakeMachines
) -> None:
    life, kind = Life(objects, cloud), objects.machine.machine
    objects.create("one")
    until("ready", lambda: objects.ready(kind, "one") == "True")
    cloud.vms.clear()
    life.changes.report(objects.get(kind, "one")["metadata"]["uid"])
    until("missing", lambda: objects.ready(kind, "one") == "False")
    metric = "mooring_machine_problem"
    until("counted", lambda: life.value(metric, reason="VMMissing") == 1)
    assert life.end() == 0


def test_a_dry_run_writes_nothing(
    objects: Any, cloud: fake_cloud.FakeMachines, caplog: pytest.LogCaptureFixture
) -> None:
    objects.create("one")
    before = len(objects.api.calls)
    life = Life(objects, cloud, "--dry-run")
    listed = {"fakemachines", "machines", "clusters", "secrets", "fakeclusters"}
    listed.add("fakemachinetemplates")

    def watched() -> set[str]:
        calls = objects.api.calls[before:]
        return {call.resource for call in calls if call.verb == "list"}

    until("watches", lambda: watched() >= listed)
    until("reads", lambda: "list machines" in cloud.calls)
    assert life.end() == 0
    assert not [call for call in objects.api.calls[before:] if call.is_write]
    assert cloud.vms == {}


def test_a_template_shows_what_its_nodes_have(
    objects: Any, cloud: fake_cloud.FakeMachines
) -> None:
    life, kind = Life(objects, cloud), objects.template.template

    def capacity() -> object:
        status = (objects.get(kind, "small") or {}).get("status", {})
        return status.get("capacity")

    until("shown", lambda: capacity() == {"cpu": "2", "memory": "8Gi"})
    assert life.end() == 0
    assert cloud.calls == []


def test_a_secret_without_the_label_is_read(
    objects: Any, cloud: fake_cloud.FakeMachines
) -> None:
    """Secrets are watched by their label; users may create others."""
    objects.create("one")
    secret = objects.get(resources.SECRETS, "one-data")
    secret["metadata"]["labels"] = {}
    objects.api.put(resources.SECRETS, secret)
    life = Life(objects, cloud)
    until("ready", lambda: objects.ready(objects.machine.machine, "one") == "True")
    assert life.end() == 0


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://10.0.0.1:6443", ControlPlaneEndpoint("10.0.0.1", 6443)),
        ("https://api.example.com", ControlPlaneEndpoint("api.example.com", 443)),
        ("https://[fd00::1]:6443/path", ControlPlaneEndpoint("fd00::1", 6443)),
    ],
)
def test_the_endpoint_of_a_url(url: str, expected: ControlPlaneEndpoint) -> None:
    assert provider_daemon.endpoint_of(url) == expected
