"""State of Services, Nodes and volumes, from what the cluster records."""

import datetime
from collections.abc import Mapping

from lib.ccm import recorded
from lib.kube import resources
from lib.kube.fake import api as fake_api

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
ID = "mooring.io/load-balancer-id"
Json = dict[str, object]


def put_event(
    api: fake_api.FakeApi, kind: str, uid: str, reason: str, second: int, bad: bool
) -> None:
    about = {"kind": kind, "name": "any", "namespace": "default", "uid": uid}
    at = (NOW + datetime.timedelta(seconds=second)).isoformat()
    event: Json = {
        "metadata": {"name": f"{uid}.{second}", "namespace": "default"},
        "involvedObject": about,
        "type": "Warning" if bad else "Normal",
        "reason": reason,
        "message": f"text of {reason}",
        "lastTimestamp": at,
    }
    api.put(resources.EVENTS, event)


def service(name: str, ip: str = "", **more: object) -> Json:
    about = {
        "name": name,
        "namespace": "default",
        "annotations": {ID: f"id-{name}"},
        **more,
    }
    status = {"loadBalancer": {"ingress": [{"ip": ip}]}} if ip else {}
    return {"metadata": about, "spec": {"type": "LoadBalancer"}, "status": status}


def uid(document: Mapping[str, object]) -> str:
    about = document["metadata"]
    assert isinstance(about, dict)
    return str(about["uid"])


def test_services_with_two_calls() -> None:
    api = fake_api.FakeApi()
    served = api.put(resources.SERVICES, service("served", "192.0.2.1"))
    failing = api.put(resources.SERVICES, service("failing"))
    bare = service("bare")
    bare["spec"] = {"type": "ClusterIP"}
    api.put(resources.SERVICES, bare)
    other = service("other")
    other["spec"] = {"type": "LoadBalancer", "loadBalancerClass": "x"}
    api.put(resources.SERVICES, other)
    put_event(api, "Service", uid(served), "SyncLoadBalancerFailed", 1, True)
    put_event(api, "Service", uid(served), "EnsuredLoadBalancer", 2, False)
    put_event(api, "Service", uid(failing), "SyncLoadBalancerFailed", 1, True)
    put_event(api, "Service", uid(failing), "EnsuringLoadBalancer", 2, False)
    put_event(api, "Node", uid(failing), "OfAnotherKind", 3, True)
    rows = recorded.services(api, ("unset", ID), 5)
    failed = "SyncLoadBalancerFailed: text of SyncLoadBalancerFailed"
    assert rows == (
        recorded.ServiceRow("default/failing", "", "id-failing", "Pending", failed),
        recorded.ServiceRow("default/other", "", "id-other", "OtherClass", ""),
        recorded.ServiceRow("default/served", "192.0.2.1", "id-served", "Ready", ""),
    )
    assert [call.resource for call in api.calls] == ["services", "events"]


def node(name: str, ready: str, *taints: str, network: str = "False") -> Json:
    keys = [{"key": key, "effect": "NoSchedule"} for key in taints]
    conditions = [
        {"type": "Ready", "status": ready},
        {"type": "NetworkUnavailable", "status": network, "reason": "NoRoute"},
    ]
    addresses = [
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "Hostname", "address": name},
    ]
    return {
        "metadata": {"name": name},
        "spec": {"providerID": f"openstack:///id-{name}", "taints": keys},
        "status": {"conditions": conditions, "addresses": addresses},
    }


def test_nodes_with_two_calls() -> None:
    api = fake_api.FakeApi()
    taint = "node.cloudprovider.kubernetes.io/"
    for document in (
        node("a", "True"),
        node("b", "False"),
        node("c", "False", f"{taint}shutdown"),
        node("d", "True", f"{taint}uninitialized"),
        node("e", "True", network="True"),
    ):
        api.put(resources.NODES, document)
    put_event(api, "Node", "b", "KubeletProblem", 1, True)
    rows = recorded.nodes(api, 5)
    assert [(row.name, row.state, row.problem) for row in rows] == [
        ("a", "Ready", ""),
        ("b", "NotReady", "KubeletProblem: text of KubeletProblem"),
        ("c", "Shutdown", ""),
        ("d", "Uninitialized", ""),
        ("e", "Ready", "NetworkUnavailable: NoRoute"),
    ]
    assert {(row.address, row.server) for row in rows[:1]} == {("10.0.0.1", "id-a")}
    assert [call.resource for call in api.calls] == ["nodes", "events"]


def volume(name: str, phase: str, **more: object) -> Json:
    spec = {
        "csi": {"driver": "d", "volumeHandle": f"id-{name}"},
        "claimRef": {"namespace": "default", "name": f"c-{name}", "uid": f"u-{name}"},
    }
    return {
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": phase, **more},
    }


def attachment(volume_name: str, attached: bool, error: str = "") -> Json:
    status: Json = {"attached": attached}
    if error:
        status["attachError"] = {"message": error}
    source = {"persistentVolumeName": volume_name}
    spec = {"source": source, "nodeName": "node-1", "attacher": "d"}
    about = {"name": f"a-{volume_name}"}
    return {"metadata": about, "spec": spec, "status": status}


def test_volumes_with_four_calls() -> None:
    api = fake_api.FakeApi()
    for document in (
        volume("p1", "Bound"),
        volume("p2", "Bound"),
        volume("p3", "Failed", message="deletion failed"),
    ):
        api.put(resources.PERSISTENT_VOLUMES, document)
    api.put(resources.VOLUME_ATTACHMENTS, attachment("p1", True))
    api.put(resources.VOLUME_ATTACHMENTS, attachment("p2", False, "no such server"))
    waiting = {"metadata": {"name": "a-new", "namespace": "default"}}
    claim = api.put(resources.CLAIMS, {**waiting, "status": {"phase": "Pending"}})
    put_event(api, "PersistentVolumeClaim", uid(claim), "ProvisioningFailed", 1, True)
    put_event(api, "PersistentVolumeClaim", uid(claim), "Provisioning", 2, False)
    rows = recorded.volumes(api, 5)
    assert [
        (row.name, row.claim, row.node, row.state, row.problem) for row in rows
    ] == [
        (
            "",
            "default/a-new",
            "",
            "Pending",
            "ProvisioningFailed: text of ProvisioningFailed",
        ),
        ("p1", "default/c-p1", "node-1", "Attached", ""),
        ("p2", "default/c-p2", "node-1", "Bound", "AttachError: no such server"),
        ("p3", "default/c-p3", "", "Failed", "deletion failed"),
    ]
    assert rows[1].volume_id == "id-p1"
    assert [call.resource for call in api.calls] == [
        "persistentvolumes",
        "persistentvolumeclaims",
        "volumeattachments",
        "events",
    ]
