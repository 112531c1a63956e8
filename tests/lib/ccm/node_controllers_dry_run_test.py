"""A dry run says what it would do, and does none of it."""

import threading
import time
from collections.abc import Callable

import pytest
import structlog

from lib.ccm import node_controllers, options, parts
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.daemon import read_only
from lib.kube import errors, resources
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.nodes import model
from lib.process import flags
from lib.reconcile import loops

NEW = {"key": kube_nodes.UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
PATIENCE_S = 20
WANTED = {"InitialiseNode", "SetAddresses", "AddShutdownTaint", "DeleteNode"}
Entries = list["structlog.typing.EventDict"]
MakeParts = Callable[..., parts.Parts]


def ground() -> tuple[fake_api.FakeApi, fake_instances.FakeInstances]:
    """Return a Node to initialise, one to taint, one to delete."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    for name, phase in (("new", Phase.RUNNING), ("off", Phase.STOPPED)):
        cloud.put(
            Instance(
                InstanceId(name),
                name,
                phase,
                fake_instances.provider_id(name),
                (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
                "m1.small",
            )
        )
    for name in ("new", "off", "gone"):
        spec = {"providerID": fake_instances.provider_id(name)}
        api.put(
            resources.NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "spec": {"taints": [NEW]} if name == "new" else spec,
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            },
        )
    return api, cloud


def run(
    make_parts: MakeParts,
    api: fake_api.FakeApi,
    cloud: fake_instances.FakeInstances,
    words: list[str],
    is_done: Callable[[], bool],
) -> None:
    """Run both controllers until all is done."""
    arguments = ["--cloud-provider=openstack", "--node-monitor-period=100ms", *words]
    manager_options = options.read(flags.parse(options.FLAGS, arguments), "openstack")
    settings = model.NodeSettings(confirm_after_s=0.0)
    stop = threading.Event()
    running = loops.Loops(stop)
    shared = make_parts(api, running, is_dry=manager_options.dry_run)
    nodes = node_controllers.NodeControllers(
        lambda: cloud, shared, manager_options, settings
    )
    nodes.watch(running)
    running.start("watch nodes", shared.nodes.run)
    nodes.start(running)
    end = time.monotonic() + PATIENCE_S
    while not is_done() and time.monotonic() < end:
        time.sleep(0.02)
    stop.set()
    api.break_watches()
    running.join(PATIENCE_S)


def told(entries: Entries) -> set[str]:
    """Return the kinds of actions that were left out."""
    return {
        str(entry["action"]).split("(", maxsplit=1)[0]
        for entry in entries
        if entry["event"] == "action skipped (dry run)"
    }


def test_a_dry_run_logs_every_action_and_sends_no_write(
    make_parts: MakeParts,
) -> None:
    """Not even one that was refused: nothing fails."""
    api, cloud = ground()
    with structlog.testing.capture_logs() as entries:
        run(make_parts, api, cloud, ["--dry-run"], lambda: told(entries) >= WANTED)
    assert told(entries) >= WANTED
    assert [call for call in api.calls if call.is_write] == []
    failures = {
        "reconcile failed",
        "unexpected error in reconcile",
        "cannot send the Event",
    }
    assert not failures & {entry["event"] for entry in entries}


def test_the_same_without_a_dry_run_writes(make_parts: MakeParts) -> None:
    api, cloud = ground()

    def verbs() -> set[str]:
        return {call.verb for call in list(api.calls) if call.is_write}

    run(make_parts, api, cloud, [], lambda: verbs() >= {"patch", "delete"})
    assert verbs() >= {"patch", "delete"}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_an_api_for_dry_runs_refuses_every_write_unsent(method: str) -> None:
    api, _ = ground()
    refusing = read_only.read_only(api)
    with pytest.raises(errors.Forbidden, match="dry run"):
        refusing.request(method, resources.NODES.path(None, "new"), timeout_s=1)
    assert api.calls == []
    assert b'"off"' in refusing.read(resources.NODES, "off", timeout_s=1)
