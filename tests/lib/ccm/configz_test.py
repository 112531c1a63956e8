"""/configz as the reference serves it."""

import json
from typing import Any

from lib.ccm import configz, options
from lib.process import exchange, flags

ASKED = exchange.Request("GET", configz.PATH, {}, {})


def shown(*arguments: str) -> dict[str, Any]:
    values = flags.parse(options.FLAGS, ["--cloud-provider=openstack", *arguments])
    reply = configz.handler(values)(ASKED)
    assert (reply.status, reply.content_type) == (200, "application/json")
    (name, document), *more = json.loads(reply.body).items()
    assert (name, more) == ("cloudcontrollermanager.config.k8s.io", [])
    return dict(document)


def test_it_is_the_reference_s_kind_and_shape() -> None:
    """Names and defaults are those of v1alpha1; times are written as Go does."""
    document = shown()
    assert document["kind"] == "CloudControllerManagerConfiguration"
    assert document["apiVersion"] == "cloudcontrollermanager.config.k8s.io/v1alpha1"
    assert document["Generic"]["LeaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "cloud-controller-manager",
        "resourceNamespace": "kube-system",
    }
    assert document["Generic"]["ClientConnection"] == {
        "kubeconfig": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 20,
        "burst": 30,
    }
    assert document["NodeStatusUpdateFrequency"] == "5m0s"
    assert document["Webhook"] == {"Webhooks": []}


def test_what_was_given_is_shown() -> None:
    """Flags without effect too; files are named, and what they hold is not."""
    document = shown(
        "--controllers=*,-route",
        "--cloud-config=/etc/config/cloud.conf",
        "--cluster-name=c1",
        "--concurrent-node-syncs=7",
        "--route-reconciliation-period=1m30s",
    )
    assert document["Generic"]["Controllers"] == ["*", "-route"]
    shared = document["KubeCloudShared"]
    assert shared["CloudProvider"] == {
        "Name": "openstack",
        "CloudConfigFile": "/etc/config/cloud.conf",
    }
    assert shared["ClusterName"] == "c1"
    assert shared["RouteReconciliationPeriod"] == "1m30s"
    assert document["NodeController"]["ConcurrentNodeSyncs"] == 7
