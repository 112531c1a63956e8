import json
import pathlib
import tomllib

import yaml

from lib.lab import places
from lib.lab.artifacts import container_tools
from lib.lab.kube import kubelet_files

WHERE = places.Places(pathlib.Path("/cache"), pathlib.Path("/my lab"), 30000)
OTHER = places.Places(pathlib.Path("/cache"), pathlib.Path("/other"), 30016)
TOOLS = container_tools.Tools(pathlib.Path("/x/runc"), pathlib.Path("/x/cni"))


def test_containerd_keeps_to_its_folder() -> None:
    """Its data, state and sockets go away with the lab."""
    config = tomllib.loads(kubelet_files.containerd(WHERE, TOOLS))
    optional = config["plugins"]["io.containerd.internal.v1.opt"]["path"]
    folders = [config["root"], config["state"], config["grpc"]["address"], optional]
    assert all(folder.startswith("/my lab/node/containerd/") for folder in folders)


def test_kubelet_listens_on_loopback_only() -> None:
    """A lab's node cannot be reached from another machine."""
    config = yaml.safe_load(kubelet_files.kubelet(WHERE, "boat"))
    assert config["address"] == "127.0.0.1"
    assert config["readOnlyPort"] == 0
    assert config["authentication"]["anonymous"] == {"enabled": False}


def test_heart_beats_faster_than_the_grace_period() -> None:
    """A healthy node never turns Unknown for want of a heartbeat."""
    config = yaml.safe_load(kubelet_files.kubelet(WHERE, "boat"))
    assert config["nodeStatusReportFrequency"] == "2s"
    assert config["nodeLeaseDurationSeconds"] <= 8


def test_two_labs_share_neither_bridge_nor_addresses() -> None:
    """Two labs side by side do not route into each other."""
    network, other_network = (
        json.loads(kubelet_files.network(lab)) for lab in (WHERE, OTHER)
    )
    plugins = (network["plugins"][0], other_network["plugins"][0])
    assert plugins[0]["bridge"] != plugins[1]["bridge"]
    assert plugins[0]["ipam"]["ranges"] != plugins[1]["ipam"]["ranges"]
