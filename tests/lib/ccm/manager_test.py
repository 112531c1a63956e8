"""A manager's life: it takes the Lease, and gives it away in the end."""

import json
import threading
import time
from collections.abc import Callable

import prometheus_client
import pytest
import structlog

from lib.ccm import manager, options
from lib.cloud import protocol
from lib.cloud.fake import instances as fake_instances
from lib.daemon import reopening
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.process import flags

LEASE = ("cloud-controller-manager", "kube-system")
ARGUMENTS = ["--cloud-provider=openstack", "--secure-port=0"]


class Life:
    """One manager over a fake API server, in a thread of its own."""

    def __init__(self, api: fake_api.FakeApi, cloud: protocol.Cloud) -> None:
        opened = reopening.Opened(cloud, lambda: False)
        values = flags.parse(options.FLAGS, ARGUMENTS)
        manager_options = options.read(values, "openstack")
        self.stop = threading.Event()
        self.codes: list[int] = []
        program = manager.ManagerProgram("ccm", "0", "openstack", lambda calls: opened)
        registry = prometheus_client.CollectorRegistry()
        running = manager.Manager(program, values, manager_options, registry, self.stop)
        reopened = reopening.Reopening(lambda: opened)
        self.thread = threading.Thread(
            target=lambda: self.codes.append(running.run(reopened, api, {}))
        )
        self.thread.start()

    def end(self) -> int:
        self.stop.set()
        self.thread.join(30)
        (code,) = self.codes
        return code


def holder(api: fake_api.FakeApi) -> str | None:
    for lease in api.all(resources.LEASES):
        return str(json.loads(json.dumps(lease))["spec"].get("holderIdentity", ""))
    return None


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture()
def cloud() -> protocol.Cloud:
    return protocol.Cloud("openstack", fake_instances.FakeInstances())


def test_the_lease_is_free_after_the_end(cloud: protocol.Cloud) -> None:
    api = fake_api.FakeApi()
    life = Life(api, cloud)
    until(lambda: holder(api))
    assert life.end() == 0
    assert holder(api) == ""


def test_a_successor_takes_over_at_once(cloud: protocol.Cloud) -> None:
    """Without waiting for the 15 s of the Lease to pass."""
    api = fake_api.FakeApi()
    first = Life(api, cloud)
    until(lambda: holder(api))
    was = holder(api)
    second = Life(api, cloud)
    began = time.monotonic()
    assert first.end() == 0
    until(lambda: holder(api) not in (was, ""))
    assert time.monotonic() - began < 10
    assert second.end() == 0


def test_without_a_router_routes_are_off(cloud: protocol.Cloud) -> None:
    """Logged once at info; the Node's conditions are unchanged."""
    api = fake_api.FakeApi()
    conditions = [{"type": "NetworkUnavailable", "status": "True", "reason": "mine"}]
    api.put(
        resources.NODES,
        {
            "metadata": {"name": "node-1"},
            "spec": {"podCIDRs": ["10.111.1.0/24"]},
            "status": {"conditions": conditions},
        },
    )
    with structlog.testing.capture_logs() as logs:
        life = Life(api, cloud)
        until(lambda: holder(api))
        assert life.end() == 0
    levels = [log["log_level"] for log in logs if "routes are off" in log["event"]]
    assert levels == ["info"]
    (node,) = json.loads(json.dumps(api.all(resources.NODES)))
    assert node["status"]["conditions"] == conditions


def test_an_election_that_breaks_ends_the_process_with_a_failure(
    cloud: protocol.Cloud,
) -> None:
    api = fake_api.FakeApi()

    def breaks(call: object) -> None:
        if getattr(call, "resource", "") == "leases":
            raise RuntimeError("a bug")

    api.before_call = breaks
    life = Life(api, cloud)
    life.thread.join(20)
    assert life.codes == [1]
