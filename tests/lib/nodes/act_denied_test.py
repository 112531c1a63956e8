"""A write of a Node that the API server denies is an Event of that Node."""

import datetime
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lib.kube import errors, events, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.nodes import act, model

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
ACTIONS: dict[str, model.Action] = {
    "the addresses": model.SetAddresses(()),
    "labels": model.SetLabels((("a", "b"),)),
    "the initialisation": model.InitialiseNode("openstack:///id-1", ()),
    "the shutdown taint": model.AddShutdownTaint(),
}
WEBHOOK = 'admission webhook "policy.example.org" denied the request: no'


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("error", "is_reported"),
    [
        (errors.Forbidden(WEBHOOK, operation="PATCH", status=403), True),
        (errors.Invalid(WEBHOOK, operation="PATCH", status=422), True),
        (errors.Conflict("changed", operation="PATCH", status=409), False),
        (errors.Unavailable("no answer in time", operation="PATCH"), False),
    ],
)
def test_a_denied_write(
    make_node: Callable[..., Any],
    action: str,
    error: errors.KubeError,
    is_reported: bool,
) -> None:
    api = fake_api.FakeApi(lambda: NOW)
    recorders = {
        source: events.Recorder(api, component=source, host="", poll_s=0.01)
        for source in model.Source
    }
    nodes = store.Store(api, resources.NODES, kube_nodes.Node)
    api.faults.append(calls.Fault(error, "patch", "nodes"))
    with pytest.raises(errors.KubeError):
        act.NodeActor(api, nodes, recorders).act(make_node(), ACTIONS[action])
    recorder, stop = recorders[model.Source.NODE], threading.Event()
    sender = threading.Thread(target=recorder.run, args=(stop,))
    sender.start()
    assert recorder.flush(10.0)
    stop.set()
    sender.join()
    recorded = [(e["reason"], e["message"]) for e in api.all(resources.EVENTS)]
    message = f"Failed writing node node-1: {WEBHOOK}"
    assert recorded == ([("SyncNodeFailed", message)] if is_reported else [])
