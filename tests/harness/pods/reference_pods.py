"""The reference in pods: its manifests, with the lab's builds of its programs.

The containers of cinder-csi-plugin have the image of csi-node, for its tools, and the
program by a volume. No module proxy has node-driver-registrar: its container runs
`lib/csi/kubelet_registration.py` with the arguments of the reference's.

Source: kubernetes/cloud-provider-openstack, manifests/controller-manager and
manifests/cinder-csi-plugin.
"""

import contextlib
import json
import os
import pathlib
import stat
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from lib.lab import errors
from lib.lab.artifacts import oci_image, programs
from lib.lab.daemons import csi_node
from lib.lab.images import package_lock, rootfs
from lib.lab.kube import control_plane, kubelet, kubelet_files
from lib.lab.openstack import pod_values
from lib.lab.pods import node_values, pod_host, sidecars
from lib.lab.run import ports
from lib.lab.storage import metadata_service
from tests.harness.pods import pod_node

GROUP = "reference"
CCM, PLUGIN = "openstack-cloud-controller-manager", "cinder-csi-plugin"
CONTROLLER, NODE = "csi-cinder-controllerplugin", "csi-cinder-nodeplugin"
WORKLOADS = {
    CCM: "DaemonSet",
    CONTROLLER: "Deployment",
    NODE: "DaemonSet",
}
CLUSTER = "kubernetes"
"""The ownership metadata of volumes, as the manifests have it."""
LINK_LOCAL = "169.254.169.254"
_IMAGE = f"localhost/reference/{CCM}:v1.36.0"
_PLUGIN_DIR = f"plugins/{csi_node.DRIVER}"
_DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
"""Source: Linux Documentation/admin-guide/devices.txt."""
_REGISTRAR = f"""
import signal, sys, threading
sys.path.insert(0, "/{rootfs.PROJECT}")
from lib.csi import kubelet_registration
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
endpoint = sys.argv[2].partition("=")[2]
socket = "/registration/{csi_node.DRIVER}-reg.sock"
kubelet_registration.Registration("{csi_node.DRIVER}", endpoint, socket).run(stop)
"""
Json = dict[str, Any]
_CONFIG: Json = {
    "name": "config",
    "mountPath": "/etc/config",
    "readOnly": True,
}
_SECRET: Json = {"name": "config", "secret": {"secretName": pod_node.SECRET}}
_CONF = f"--cloud-config=/etc/config/{pod_node.KEY}"
_SOCKET = {"name": "socket-dir", "mountPath": "/csi"}
_ADDRESS = "--csi-address=/csi/csi.sock"
_TOLERATES_ALL = [{"operator": "Exists"}]
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]
_RULES: Mapping[str, list[tuple[str, list[str], list[str]]]] = {
    "cloud-controller-manager": [
        ("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        ("", ["events"], ["create", "patch", "update"]),
        ("", ["nodes"], ["*"]),
        ("", ["nodes/status"], ["patch"]),
        ("", ["services"], ["list", "watch", "patch", "update"]),
        ("", ["services/status"], ["patch"]),
        ("", ["configmaps"], ["get", "list", "watch"]),
    ],
    "csi-cinder-controller-sa": [
        ("", ["persistentvolumes", "persistentvolumeclaims", "events"], _ALL),
        ("", ["persistentvolumeclaims/status"], ["patch", "update"]),
        ("", ["nodes", "pods", "secrets"], ["get", "list", "watch"]),
        (
            "storage.k8s.io",
            ["storageclasses", "csinodes", "volumeattributesclasses"],
            ["get", "list", "watch"],
        ),
        ("storage.k8s.io", ["volumeattachments"], _ALL),
        ("storage.k8s.io", ["volumeattachments/status"], ["patch"]),
        ("coordination.k8s.io", ["leases"], _ALL),
    ],
}
"""Permissions by ServiceAccount: API group, resources, verbs."""


def load(node: pod_node.PodNode, folder: pathlib.Path) -> None:
    """Import the image of the manager, and create what the others require.

    Raises:
        LabError: a program is not built, or containerd rejects the image.
    """
    content = programs.path(node.where, CCM).read_bytes()
    file = folder / f"{CCM}.tar"
    file.write_bytes(
        oci_image.archive(_IMAGE, CCM, content, package_lock.architecture())
    )
    kubelet.load_image(node.where, file)
    file.unlink()
    for name, number in _DEVICES.items():
        with contextlib.suppress(FileExistsError):
            os.mknod(_devices(node) / name, 0o666 | stat.S_IFCHR, os.makedev(*number))


def _devices(node: pod_node.PodNode) -> pathlib.Path:
    return pod_host.root(node.where) / "dev"


def apply(node: pod_node.PodNode) -> None:
    """Create all objects of the reference."""
    documents = [
        *_permissions(),
        _manager(node),
        _controller(node),
        _node_plugin(node),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": csi_node.DRIVER},
            "spec": {
                "attachRequired": True,
                "podInfoOnMount": True,
                "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": pod_values.CLASS},
            "provisioner": csi_node.DRIVER,
            "parameters": {"type": "fast", "csi.storage.k8s.io/fstype": "xfs"},
            "allowVolumeExpansion": True,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    ]
    text = "\n---\n".join(json.dumps(document) for document in documents)
    control_plane.apply_manifests(node.where, text)


def _permissions() -> list[Json]:
    documents: list[Json] = []
    about = "rbac.authorization.k8s.io/v1"
    for name, rules in _RULES.items():
        subject = {
            "kind": "ServiceAccount",
            "name": name,
            "namespace": pod_node.SYSTEM,
        }
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        metadata = {"name": name}
        documents += [
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {**metadata, "namespace": pod_node.SYSTEM},
            },
            {
                "apiVersion": about,
                "kind": "ClusterRole",
                "metadata": metadata,
                "rules": [
                    {"apiGroups": [group], "resources": resources, "verbs": verbs}
                    for group, resources, verbs in rules
                ],
            },
            {
                "apiVersion": about,
                "kind": "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": {**reference, "name": name},
                "subjects": [subject],
            },
        ]
    reader = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "extension-apiserver-authentication-reader",
    }
    return [
        *documents,
        {
            "apiVersion": about,
            "kind": "RoleBinding",
            "metadata": {"name": f"{CCM}:reader", "namespace": pod_node.SYSTEM},
            "roleRef": reader,
            "subjects": [{**subject, "name": "cloud-controller-manager"}],
        },
    ]


def _workload(name: str, spec: Json) -> Json:
    """Return a DaemonSet or Deployment. spec: of its pods."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"tolerations": _TOLERATES_ALL, **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": WORKLOADS[name],
        "metadata": {"name": name, "namespace": pod_node.SYSTEM},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def _manager(node: pod_node.PodNode) -> Json:
    container = {
        "name": CCM,
        "image": _IMAGE,
        "args": [
            "--v=2",
            f"--cluster-name={node.name}",
            _CONF,
            "--cloud-provider=openstack",
            "--use-service-account-credentials=false",
            f"--bind-address={ports.LOOPBACK}",
            f"--secure-port={node.where.port('reference')}",
        ],
        # The network of the host has no route to Services here.
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": ports.LOOPBACK},
            {
                "name": "KUBERNETES_SERVICE_PORT",
                "value": str(node.where.port("apiserver")),
            },
        ],
        "volumeMounts": [_CONFIG],
    }
    spec = {
        "serviceAccountName": "cloud-controller-manager",
        "hostNetwork": True,
        "nodeSelector": {node_values.CONTROL_PLANE: ""},
        "securityContext": {"runAsUser": 1001},
        "containers": [container],
        "volumes": [_SECRET],
    }
    return _workload(CCM, spec)


def _controller(node: pod_node.PodNode) -> Json:
    images = sidecars.references()
    election = "--leader-election=true"
    arguments = {
        "csi-attacher": [_ADDRESS, "--timeout=3m", election],
        "csi-provisioner": [
            _ADDRESS,
            "--timeout=3m",
            "--default-fstype=ext4",
            "--feature-gates=Topology=true",
            "--extra-create-metadata",
            election,
        ],
        "csi-resizer": [
            _ADDRESS,
            "--timeout=3m",
            "--handle-volume-inuse-error=false",
            election,
        ],
    }
    containers = [
        {"name": name, "image": images[name], "args": words, "volumeMounts": [_SOCKET]}
        for name, words in arguments.items()
    ]
    plugin = _plugin(node, [_CONF, f"--cluster={CLUSTER}", "--v=2"])
    plugin["volumeMounts"] += [_SOCKET, _CONFIG]
    spec = {
        "serviceAccountName": "csi-cinder-controller-sa",
        "containers": [*containers, plugin],
        "volumes": [{"name": "socket-dir", "emptyDir": {}}, _SECRET, _program(node)],
    }
    return _workload(CONTROLLER, spec)


def _plugin(node: pod_node.PodNode, words: list[str]) -> Json:
    return {
        "name": PLUGIN,
        "image": node.images["csi-node"].reference,
        "command": [f"/{PLUGIN}"],
        "args": ["--endpoint=unix:///csi/csi.sock", *words],
        "volumeMounts": [
            {"name": "program", "mountPath": f"/{PLUGIN}", "readOnly": True}
        ],
    }


def _program(node: pod_node.PodNode) -> Json:
    path = programs.path(node.where, PLUGIN)
    return {"name": "program", "hostPath": {"path": str(path), "type": "File"}}


def _node_plugin(node: pod_node.PodNode) -> Json:
    kubelet_folder = kubelet_files.kubelet_room(node.where)
    words = ["--provide-controller-service=false", _CONF, "--v=4"]
    plugin = _plugin(node, words)
    plugin["securityContext"] = {"privileged": True, "runAsUser": 0}
    plugin["volumeMounts"] += [
        _SOCKET,
        _CONFIG,
        {
            "name": "kubelet",
            "mountPath": str(kubelet_folder),
            "mountPropagation": "Bidirectional",
        },
        {"name": "dev", "mountPath": "/dev", "mountPropagation": "HostToContainer"},
    ]
    registrar = {
        "name": "node-driver-registrar",
        "image": node.images["csi-node"].reference,
        "command": ["/usr/bin/python3.11", "-IBc", _REGISTRAR],
        "args": [
            _ADDRESS,
            f"--kubelet-registration-path={kubelet_folder}/{_PLUGIN_DIR}/csi.sock",
        ],
        "volumeMounts": [
            _SOCKET,
            {"name": "registration", "mountPath": "/registration"},
        ],
    }
    folders = {
        "socket-dir": kubelet_folder / _PLUGIN_DIR,
        "registration": kubelet_folder / "plugins_registry",
        "kubelet": kubelet_folder,
        "dev": _devices(node),
    }
    volumes = [
        {
            "name": name,
            "hostPath": {"path": str(path), "type": "DirectoryOrCreate"},
        }
        for name, path in folders.items()
    ]
    spec = {
        "hostNetwork": True,
        "containers": [registrar, plugin],
        "volumes": [*volumes, _SECRET, _program(node)],
    }
    return _workload(NODE, spec)


@contextlib.contextmanager
def surroundings(node: pod_node.PodNode) -> Iterator[None]:
    """Serve metadata at the link-local address of the node's network.

    Called by the thread that is in that network.

    Raises:
        LabError: the address cannot be added.
    """
    words = ("ip", "address", "add", f"{LINK_LOCAL}/32", "dev", "lo")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise errors.LabError(f"no address {LINK_LOCAL}: {done.stderr.strip()}")
    (server,) = node.project.items()
    with metadata_service.served(server.id, pod_values.ZONE, LINK_LOCAL, 80):
        yield
