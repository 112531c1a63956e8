"""Simulated Nodes stay Ready, also when their process started late."""

import datetime
import json

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.lab.osdpl import nodes

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)


def ready(api: fake_api.FakeApi) -> dict[str, str]:
    page = json.loads(api.list_page(resources.NODES, query={}, timeout_s=1))
    return {
        node["metadata"]["name"]: row["status"]
        for node in page["items"]
        for row in node["status"]["conditions"]
        if row["type"] == "Ready"
    }


def writes(api: fake_api.FakeApi, resource: str) -> int:
    return sum(call.is_write and call.resource == resource for call in api.calls)


def test_a_node_that_is_unknown_becomes_ready_again() -> None:
    """As the Node controller leaves it when the Lease was not renewed in time."""
    api = fake_api.FakeApi()
    nodes.ensure(api, NOW)
    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    api.patch(
        resources.NODES,
        "control-1",
        json.dumps({"status": {"conditions": [unknown]}}).encode(),
        subresource="status",
        timeout_s=1,
    )
    assert ready(api)["control-1"] == "Unknown"
    api.calls.clear()
    nodes.beat(api, NOW)
    assert ready(api) == dict.fromkeys(nodes.NODES, "True")
    assert writes(api, "nodes") == 1


def test_a_ready_node_is_not_written() -> None:
    api = fake_api.FakeApi()
    nodes.ensure(api, NOW)
    api.calls.clear()
    nodes.beat(api, NOW)
    assert writes(api, "nodes") == 0
    assert writes(api, "leases") == len(nodes.NODES)
