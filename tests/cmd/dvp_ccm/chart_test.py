"""What the charts render for DVP, by their snapshots, fits the programs."""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capdvp import main as capdvp
from cloud_data_discoverer import main as discoverer
from csi_controller import main as csi_controller
from csi_node import main as csi_node
from dvp_ccm import main as dvp_ccm
from lib.ccm import flag_table, options
from lib.cloud.dvp import config as parent_config
from lib.cloud.dvp import needs
from lib.lab.charts import charts
from lib.process import flags

ROOT = pathlib.Path()
PROGRAMS: Mapping[str, tuple[flags.Flag[object], ...]] = {
    "capdvp": capdvp.FLAGS,
    "cloud-data-discoverer": discoverer.FLAGS,
    "controller": csi_controller.FLAGS,
    "dvp-ccm": dvp_ccm.FLAGS,
    "node": csi_node.FLAGS,
}
"""Flags by the name of the container."""
CHARTS = (
    "capdvp",
    "cloud-data-discoverer",
    "cloud-provider-dvp",
    "csi-controller",
    "csi-node",
    "dvp-ccm",
)
"""As in BUILD: the others contain nothing for DVP."""
OF_DVP = ("capdvp", "dvp-ccm")
"""Containers that exist for DVP alone."""
Container = tuple[charts.Snapshot, dict[str, Any], dict[str, Any]]


def containers() -> Iterator[Container]:
    """Yield snapshot, pod and container of these programs, in all that is for DVP."""
    for snapshot in (each for name in CHARTS for each in charts.of(name).values()):
        for workload in snapshot.workloads(ROOT).values():
            pod = workload["template"]["spec"]
            for container in pod["containers"]:
                is_dvp = container["name"] in OF_DVP
                if is_dvp or "--cloud=dvp" in container["args"]:
                    yield snapshot, pod, container


FOUND = list(containers())


def params(*names: str) -> list[object]:
    """Return the containers of some names as parameters of a test."""
    return [
        pytest.param(
            snapshot,
            pod,
            container,
            id=f"{snapshot.chart}-{snapshot.name}-{container['name']}",
        )
        for snapshot, pod, container in FOUND
        if container["name"] in names
    ]


EVERY = params(*PROGRAMS)
CALLERS = params(*(name for name in PROGRAMS if name != "node"))
NODES = params("node")
MANAGERS = params("dvp-ccm")


@pytest.mark.parametrize(("snapshot", "pod", "container"), EVERY)
def test_every_flag_is_accepted_and_has_an_effect(
    snapshot: charts.Snapshot, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> None:
    """Prints the flags."""
    parsed = flags.parse(PROGRAMS[container["name"]], container["args"])
    print(f"{snapshot.chart} {snapshot.name} {container['args']}")
    assert parsed.without_effect() == ()


@pytest.mark.parametrize(("snapshot", "pod", "container"), CALLERS)
def test_the_parent_is_a_file_of_a_secret(
    snapshot: charts.Snapshot, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> None:
    """And project and cluster are those of the values, or of the same Secret."""
    parsed = flags.parse(PROGRAMS[container["name"]], container["args"])
    path = pathlib.Path(parsed[parent_config.PARENT_KUBECONFIG])
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    mount = mounts[str(path.parent)]
    assert mount["readOnly"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    name = volumes[mount["name"]]["secret"]["secretName"]
    variables = {variable["name"]: variable for variable in container["env"]}
    assert parent_config.KUBECONFIG not in variables
    for variable in (parent_config.NAMESPACE, parent_config.CLUSTER_UUID):
        source = variables[variable].get("valueFrom", {}).get("secretKeyRef")
        assert variables[variable].get("value") or source["name"] == name


@pytest.mark.parametrize(("snapshot", "pod", "container"), NODES)
def test_nodes_have_no_credentials(
    snapshot: charts.Snapshot, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> None:
    """No variable but the name of the Node, no Secret, no token; prints all of them."""
    sources = {
        volume["name"]: [key for key in volume if key != "name"]
        for volume in pod["volumes"]
    }
    print(snapshot.chart, snapshot.name, container["env"], sources)
    assert container["env"] == [
        {
            "name": "NODE_NAME",
            "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
        }
    ]
    assert {kind for kinds in sources.values() for kind in kinds} == {
        "emptyDir",
        "hostPath",
    }
    assert pod["automountServiceAccountToken"] is False
    for item in pod["containers"]:
        assert "envFrom" not in item
        for name in (parent_config.NAMESPACE, "CREDENTIALS", "--parent", "--cloud-c"):
            assert name.lower() not in json.dumps(item).lower()


@pytest.mark.parametrize(("snapshot", "pod", "container"), MANAGERS)
def test_values_of_the_manager(
    snapshot: charts.Snapshot, pod: Mapping[str, Any], container: Mapping[str, Any]
) -> None:
    """The ConfigMap that disables load balancers is in the namespace of the release."""
    parsed = flags.parse(dvp_ccm.FLAGS, container["args"])
    assert options.judge(parsed, dvp_ccm.PROVIDER) == ()
    home, _, name = parsed[dvp_ccm.DISABLING_CONFIG_MAP].partition("/")
    assert home == snapshot.namespace
    assert dvp_ccm.DISABLING_CONFIG_MAP.default.endswith(f"/{name}")
    present = {item["metadata"]["name"] for item in snapshot.objects(ROOT, "ConfigMap")}
    values = snapshot.all_values(ROOT)
    settings = values.get("dvp-ccm", values).get("loadBalancers", {"enabled": True})
    assert (name in present) is not settings["enabled"]
    assert parsed[flag_table.LEASE_NAMESPACE] == charts.SYSTEM


def test_the_permissions_are_those_of_the_lab() -> None:
    """Under which all other tests run the program."""
    chart = charts.folder(ROOT, "dvp-ccm")
    assert (chart / "files/rbac.yaml").read_text() == needs.manifest()


def test_controllers_of_the_schema_are_those_of_the_program() -> None:
    """Without routes, which a parent does not have."""
    chart = charts.folder(ROOT, "dvp-ccm")
    schema = json.loads((chart / "values.schema.json").read_text())
    known = schema["properties"]["controllers"]["items"]["enum"]
    names = [name for name in flag_table.CONTROLLERS if name != options.ROUTE]
    assert known == ["*", *names, *(f"-{name}" for name in names)]
