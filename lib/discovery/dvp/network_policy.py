"""The NetworkPolicy of the cluster's VMs in the parent. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, layout Standard, base infrastructure.
"""

from collections.abc import Mapping

from lib.discovery.dvp import manifests, model

CLUSTER_UUID = "dvp.deckhouse.io/cluster-uuid"
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
_ANYWHERE: Mapping[str, object] = {"ipBlock": {"cidr": "0.0.0.0/0"}}


def isolated(
    project: model.Project, cluster: model.ClusterFacts
) -> manifests.Manifest | None:
    """Return the policy; None where the settings, or a missing prefix, exclude it."""
    if project.network_policy is not model.NetworkPolicy.ISOLATED or not cluster.prefix:
        return None
    own = _namespace(project.namespace)
    ingress = {
        **_namespace("d8-ingress-nginx"),
        "podSelector": {"matchLabels": {"app": "controller"}},
    }
    balancers = _namespace("d8-metallb")
    ports = [{"port": port, "protocol": "TCP"} for port in project.ingress_ports]
    open_ports = [{"from": [_ANYWHERE], "ports": ports}] if ports else []
    names = {
        "to": [_namespace("kube-system")],
        "ports": [{"port": 53, "protocol": "UDP"}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": f"isolated-{cluster.prefix}",
            "namespace": project.namespace,
        },
        "spec": {
            "podSelector": {"matchLabels": {CLUSTER_UUID: cluster.uuid}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"from": [own]},
                *open_ports,
                {"from": [ingress]},
                {"from": [balancers]},
            ],
            "egress": [
                {"to": [own]},
                {"to": [_ANYWHERE]},
                {"to": [ingress]},
                names,
                {"to": [balancers]},
            ],
        },
    }


def _namespace(name: str) -> Mapping[str, object]:
    return {"namespaceSelector": {"matchLabels": {_NAME_OF_NAMESPACE: name}}}
