"""The configuration of the lab's kubelet and containerd. Pure."""

import json
import pathlib

import yaml

from lib.lab import places
from lib.lab.artifacts import container_tools
from lib.lab.kube import kube_files, node_host
from lib.lab.run import ports

PAUSE_IMAGE = "lab.local/pause:1"

_UNUSED = ("btrfs", "zfs", "devmapper", "erofs", "blockfile")


def containerd_room(where: places.Places) -> pathlib.Path:
    """Return containerd's folder."""
    return node_host.room(where) / "containerd"


def socket(where: places.Places) -> pathlib.Path:
    """Return the socket at which containerd serves."""
    return containerd_room(where) / "sock"


def kubelet_room(where: places.Places) -> pathlib.Path:
    """Return the kubelet's folder; CSI sockets go below it."""
    return node_host.room(where) / "kubelet"


def pod_network(where: places.Places) -> str:
    """Return the pods' addresses; another block for another lab."""
    return f"10.244.{where.port_base // 16 % 256}.0/24"


def containerd(where: places.Places, tools: container_tools.Tools) -> str:
    """Return containerd's configuration, as TOML.

    Without CAP_SYS_RESOURCE no process may lower an OOM score, hence the restriction.

    Source: containerd 2.x, configuration version 3.
    """
    room = containerd_room(where)
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    unused = [f"io.containerd.snapshotter.v1.{name}" for name in _UNUSED]
    return f"""\
version = 3
root = {_toml(room / "root")}
state = {_toml(room / "state")}
oom_score = 0
disabled_plugins = {json.dumps(["io.containerd.nri.v1.nri", *unused])}
[plugins.'io.containerd.internal.v1.opt']
  path = {_toml(room / "opt")}
[grpc]
  address = {_toml(socket(where))}
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = {_toml(PAUSE_IMAGE)}
[{runtime}]
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[{runtime}.cni]
  bin_dirs = [{_toml(tools.cni)}]
  conf_dir = {_toml(room / "cni")}
[{runtime}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{runtime}.containerd.runtimes.runc.options]
  BinaryName = {_toml(tools.runc)}
  SystemdCgroup = false
"""


def _toml(text: object) -> str:
    # A JSON string is a TOML basic string.
    return json.dumps(str(text))


def network(where: places.Places) -> str:
    """Return the CNI configuration: one bridge, addresses from one block."""
    plugin = {
        "type": "bridge",
        "bridge": node_host.bridge(where),
        "isGateway": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": str(containerd_room(where) / "addresses"),
            "ranges": [[{"subnet": pod_network(where)}]],
        },
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "lab", "plugins": [plugin]})


def kubelet(where: places.Places, name: str) -> str:
    """Return the kubelet's configuration.

    Status and Lease are renewed often enough for the grace period which the lab's
    kube-controller-manager grants a Node (8 s).

    Source: Kubernetes kubelet.config.k8s.io/v1beta1 KubeletConfiguration.
    """
    pki = kube_files.certificates(where)
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            **_runtime(where),
            "address": ports.LOOPBACK,
            "port": where.port("kubelet"),
            "healthzPort": where.port("kubelet-health"),
            "readOnlyPort": 0,
            "tlsCertFile": f"{pki}/{certificate(name)}.crt",
            "tlsPrivateKeyFile": f"{pki}/{certificate(name)}.key",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{pki}/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "nodeStatusUpdateFrequency": "2s",
            "nodeStatusReportFrequency": "2s",
            "nodeLeaseDurationSeconds": 8,
            "syncFrequency": "10s",
            "volumeStatsAggPeriod": "10s",
        },
        sort_keys=False,
    )


def _runtime(where: places.Places) -> dict[str, object]:
    """How pods are run, and that nothing is evicted from a full laptop."""
    return {
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node_host.cgroup(where)}",
        "cgroupsPerQOS": True,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{socket(where)}",
        "podLogsDir": str(node_host.room(where) / "pod-logs"),
        "resolvConf": "",
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
    }


def certificate(name: str) -> str:
    """Return the name of a kubelet's certificate, and of its kubeconfig."""
    return f"kubelet-{name}"
