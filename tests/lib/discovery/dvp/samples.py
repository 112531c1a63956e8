"""A cluster on DVP, as documents."""

import base64
from typing import Any

import yaml

Document = dict[str, Any]

KEY = (
    "ssh-ed25519 "
    "AAAAC3NzaC1lZDI1NTE5AAAAIGtpdmVraXZla2l2ZWtpdmVraXZla2l2ZWtpdmVraXZl me@here"
)
KUBECONFIG: Document = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "parent",
    "clusters": [
        {"name": "parent", "cluster": {"server": "https://parent.example:6443"}}
    ],
    "users": [{"name": "child", "user": {"token": "s3cr3t"}}],
    "contexts": [{"name": "parent", "context": {"cluster": "parent", "user": "child"}}],
}
UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"


def encoded(kubeconfig: Document) -> str:
    return base64.b64encode(yaml.safe_dump(kubeconfig).encode()).decode()


def machine_class(**more: object) -> Document:
    machine = {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}, **more}
    image = {"kind": "ClusterVirtualImage", "name": "ubuntu"}
    return {"virtualMachine": machine, "rootDisk": {"size": "50Gi", "image": image}}


CONFIGURATION: Document = {
    "apiVersion": "deckhouse.io/v1",
    "kind": "DVPClusterConfiguration",
    "layout": "Standard",
    "sshPublicKey": KEY,
    "zones": ["a", "b"],
    "masterNodeGroup": {
        "replicas": 3,
        "instanceClass": {
            **machine_class(ipAddresses=["Auto", "192.0.2.7"]),
            "etcdDisk": {"size": "15Gi", "storageClass": "fast"},
        },
    },
    "nodeGroups": [
        {
            "name": "front",
            "replicas": 2,
            "zones": ["b"],
            "instanceClass": machine_class(liveMigrationPolicy="AlwaysSafe"),
        }
    ],
    "provider": {"kubeconfigDataBase64": encoded(KUBECONFIG), "namespace": "fleet"},
}
