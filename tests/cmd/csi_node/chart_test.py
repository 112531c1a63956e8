"""What the chart renders, by its snapshots, fits the program.

tests/lab/charts compares them with what helm renders.
"""

import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from csi_node import main
from lib.csi import flag_table, node_flags
from lib.lab.charts import charts
from lib.process import flags

ROOT = pathlib.Path()
CHART = charts.folder(ROOT, "csi-node")
SNAPSHOTS = charts.of("csi-node")
DRIVERS = {
    "openstack": "cinder.csi.openstack.org",
    "dvp": "csi.dvp.deckhouse.io",
}
"""By the value cloud."""


def values(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].all_values(ROOT)


def pod(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].pod(ROOT)


def container(name: str, which: str) -> dict[str, Any]:
    (row,) = (item for item in pod(name)["containers"] if item["name"] == which)
    assert isinstance(row, dict)
    return row


def mounts(name: str, which: str) -> dict[str, dict[str, Any]]:
    return {item["mountPath"]: item for item in container(name, which)["volumeMounts"]}


def parsed(name: str) -> flags.Values:
    return flags.parse(main.FLAGS, container(name, "node")["args"])


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_flag_is_accepted_and_has_an_effect(name: str) -> None:
    observed = parsed(name)
    assert observed.without_effect() == ()
    assert observed[flag_table.ENDPOINT] == "unix:///csi/csi.sock"
    assert observed[flag_table.HTTP_ENDPOINT] == values(name)["httpEndpoint"]
    assert observed[node_flags.MAX_VOLUMES] == values(name)["maxVolumes"]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_kubelet_finds_the_socket(name: str) -> None:
    """Where the reference has it, so that each can replace the other."""
    folder, driver = values(name)["kubeletDirectory"], DRIVERS[values(name)["cloud"]]
    socket = f"{folder}/csi-plugins/{driver}"
    volumes = {item["name"]: item.get("hostPath", {}) for item in pod(name)["volumes"]}
    assert volumes[mounts(name, "node")["/csi"]["name"]]["path"] == socket
    is_sidecar = name == "sidecars"
    registrar = "node-driver-registrar" if is_sidecar else "node"
    flag = f"--kubelet-registration-path={socket}/csi.sock"
    assert flag in container(name, registrar)["args"]
    registration = mounts(name, registrar)["/registration"]["name"]
    assert volumes[registration]["path"] == f"{folder}/plugins_registry"
    own = f"--registration-socket=/registration/{driver}-reg.sock"
    assert (own in container(name, "node")["args"]) is not is_sidecar


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_mounts_are_visible_to_the_kubelet(name: str) -> None:
    """At the same path in the container as on the host."""
    folder = values(name)["kubeletDirectory"]
    here = mounts(name, "node")
    assert here[folder]["mountPropagation"] == "Bidirectional"
    assert here["/dev"]["mountPropagation"] == "HostToContainer"
    volumes = {item["name"]: item.get("hostPath", {}) for item in pod(name)["volumes"]}
    for path in (folder, "/dev"):
        assert volumes[here[path]["name"]]["path"] == path
    assert container(name, "node")["securityContext"]["privileged"]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_probe_asks_a_port_that_is_served(name: str) -> None:
    asked = container(name, "node")["livenessProbe"]["httpGet"]
    served = "livenessprobe" if name == "sidecars" else "node"
    flag = f"--http-endpoint={asked['host']}:{asked['port']}"
    assert flag in container(name, served)["args"]
    ports = [port["containerPort"] for port in container(name, served)["ports"]]
    assert ports == [asked["port"]]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_it_has_no_access_to_the_api_server(name: str) -> None:
    assert pod(name)["automountServiceAccountToken"] is False
    kinds = {item["kind"] for item in SNAPSHOTS[name].objects(ROOT)}
    assert kinds <= {"DaemonSet", "ServiceAccount", "VerticalPodAutoscaler"}


def test_templates_values_and_schema_have_the_same_keys() -> None:
    usual = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    texts = "".join(item.read_text() for item in (CHART / "templates").iterdir())
    shared = "".join(charts.library(ROOT).values())
    own, library = (
        set(re.findall(r"\.Values\.(\w+)", text)) for text in (texts, shared)
    )
    assert own <= set(usual) <= own | library
    assert set(schema["properties"]) == {*usual, "global", "library"}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_values_of_the_snapshots_are_valid(name: str) -> None:
    assert charts.refused(ROOT, "csi-node", values(name)) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"image": ""}, "image", id="no image"),
        pytest.param({"image": "csi-node"}, "image", id="no version"),
        pytest.param({"image": "host:5000/csi-node"}, "image", id="only a port"),
        pytest.param({"httpEndpoint": "9819"}, "httpEndpoint", id="no address"),
        pytest.param({"kubeletDirectory": "kubelet"}, "kubeletDirectory", id="folder"),
        pytest.param({"maxVolumes": 257}, "maxVolumes", id="too many volumes"),
        pytest.param({"maxUnavailable": 0}, "maxUnavailable", id="no update"),
        pytest.param({"registrar": {"mode": "none"}}, "registrar.mode", id="mode"),
        pytest.param({"registrar": {"version": ""}}, "registrar.version", id="version"),
    ],
)
def test_bad_values_are_rejected(change: dict[str, Any], field: str) -> None:
    usual = values("usual")
    assert charts.refused(ROOT, "csi-node", charts.merged(usual, change)) == [field]
