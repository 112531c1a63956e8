"""/configz: the configuration in force, in the reference's shape.

Rules: flags only, none of which is secret; files are named, never shown.

Source: k8s.io/cloud-provider v0.36 config/v1alpha1, k8s.io/controller-manager
config/v1alpha1, k8s.io/component-base config/v1alpha1 and configz.
"""

from collections.abc import Mapping

import msgspec

from lib.ccm import flag_table, options
from lib.daemon import common_flags
from lib.process import exchange, flags, kinds

NAME = "cloudcontrollermanager.config.k8s.io"
PATH = "/configz"

Json = Mapping[str, object]


def handler(values: flags.Values) -> exchange.Handler:
    """Make what answers /configz."""
    body = msgspec.json.encode({NAME: document(values)})

    def show(request: exchange.Request) -> exchange.Reply:
        del request
        return exchange.Reply(body, content_type="application/json")

    return show


def document(values: flags.Values) -> Json:
    """Return the CloudControllerManagerConfiguration that the flags stand for.

    A flag without effect here is shown as it was given.
    """
    by_name = {flag.name: flag for flag in options.FLAGS}

    def given(name: str) -> object:
        flag = by_name[name]
        value = values[flag]
        is_time = flag.kind.name == kinds.DURATION.name
        return flag.kind.show(value) if is_time else value

    def fields(table: Mapping[str, str]) -> dict[str, object]:
        return {field: given(name) for field, name in table.items()}

    return {
        "kind": "CloudControllerManagerConfiguration",
        "apiVersion": f"{NAME}/v1alpha1",
        "Generic": {
            **fields(_GENERIC),
            "Port": values[flag_table.SECURE_PORT],
            "Address": values[common_flags.BIND_ADDRESS],
            "ClientConnection": {
                **fields(_CLIENT),
                "qps": _number(given("kube-api-qps")),
            },
            "LeaderElection": fields(_ELECTION),
            "Debugging": fields(_DEBUGGING),
        },
        "KubeCloudShared": {
            **fields(_SHARED),
            "CloudProvider": fields(_PROVIDER),
        },
        "NodeController": fields(_NODE),
        "ServiceController": fields(_SERVICE),
        **fields({"NodeStatusUpdateFrequency": "node-status-update-frequency"}),
        "Webhook": fields({"Webhooks": "webhooks"}),
    }


def _number(value: object) -> object:
    """Return what is a number as one; the flag takes any text."""
    try:
        return float(str(value))
    except ValueError:
        return value


_GENERIC = {
    "MinResyncPeriod": "min-resync-period",
    "ControllerStartInterval": "controller-start-interval",
    "Controllers": "controllers",
    "LeaderMigrationEnabled": "enable-leader-migration",
}
_CLIENT = {
    "kubeconfig": "kubeconfig",
    "contentType": "kube-api-content-type",
    "burst": "kube-api-burst",
}
_ELECTION = {
    "leaderElect": "leader-elect",
    "leaseDuration": "leader-elect-lease-duration",
    "renewDeadline": "leader-elect-renew-deadline",
    "retryPeriod": "leader-elect-retry-period",
    "resourceLock": "leader-elect-resource-lock",
    "resourceName": "leader-elect-resource-name",
    "resourceNamespace": "leader-elect-resource-namespace",
}
_DEBUGGING = {
    "enableProfiling": "profiling",
    "enableContentionProfiling": "contention-profiling",
}
_SHARED = {
    "ExternalCloudVolumePlugin": "external-cloud-volume-plugin",
    "UseServiceAccountCredentials": "use-service-account-credentials",
    "AllowUntaggedCloud": "allow-untagged-cloud",
    "RouteReconciliationPeriod": "route-reconciliation-period",
    "NodeMonitorPeriod": "node-monitor-period",
    "ClusterName": "cluster-name",
    "ClusterCIDR": "cluster-cidr",
    "AllocateNodeCIDRs": "allocate-node-cidrs",
    "CIDRAllocatorType": "cidr-allocator-type",
    "ConfigureCloudRoutes": "configure-cloud-routes",
    "NodeSyncPeriod": "node-sync-period",
}
_PROVIDER = {"Name": "cloud-provider", "CloudConfigFile": "cloud-config"}
_NODE = {
    "ConcurrentNodeSyncs": "concurrent-node-syncs",
    "ConcurrentNodeStatusUpdates": "concurrent-node-status-updates",
}
_SERVICE = {"ConcurrentServiceSyncs": "concurrent-service-syncs"}
