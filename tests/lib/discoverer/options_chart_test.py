"""What the chart renders, by its snapshots, fits the program.

tests/lab/charts holds them to what helm renders.
"""

import json
import pathlib
import re
from typing import Any

import pytest
import yaml

from cloud_data_discoverer import main
from lib.cloud.openstack.config import environment
from lib.discoverer import options
from lib.lab.charts import charts
from lib.lab.daemons import discoverer
from lib.process import flags

ROOT = pathlib.Path()
CHART = charts.folder(ROOT, "cloud-data-discoverer")
SNAPSHOTS = charts.of("cloud-data-discoverer")
OPENSTACK = main.PROVIDERS["openstack"].published
MODES = ("secure-port", "proxy")
EXPECTED = {"secure-port": (True, True), "proxy": (False, False)}
"""Whether StorageClasses are managed, and whether the Secret may be created."""
COMPONENT = "cloud-data-discoverer"
READER = [
    "access-to-cloud-data-discoverer",
    "access-to-cloud-data-discoverer-role",
]


def rendered(mode: str, kind: str) -> list[dict[str, Any]]:
    return SNAPSHOTS[mode].objects(ROOT, kind)


def pod(mode: str) -> dict[str, Any]:
    return SNAPSHOTS[mode].pod(ROOT)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_and_environment_are_taken_by_the_program(mode: str) -> None:
    container = pod(mode)["containers"][0]
    values = flags.parse(main.FLAGS, container["args"])
    (secret,) = rendered(mode, "Secret")
    env = {}
    for item in container["env"]:
        if item["name"] == "POD_IP":
            continue
        of = item.get("valueFrom", {}).get("secretKeyRef")
        assert of is None or of["key"] in secret["data"], item
        env[item["name"]] = item.get("value", f"http://{item['name']}")
    environment.read(env)
    observed = options.read(values, {**env, "MODULE_CONFIG": "{}"}, OPENSTACK)
    assert (observed.plain.port == 8081) == (mode == "proxy")
    assert (observed.secure.port == 8080) == (mode == "secure-port")


@pytest.mark.parametrize("mode", MODES)
def test_probes_and_scrapes_reach_one_port_by_https(mode: str) -> None:
    """Of the program itself, or of the proxy in front of it."""
    containers = pod(mode)["containers"]
    for probe in ("livenessProbe", "readinessProbe"):
        asked = containers[0][probe]["httpGet"]
        assert (asked["port"], asked["scheme"]) == (8080, "HTTPS")
    (served,) = (c for c in containers if c.get("ports"))
    assert served["ports"] == [{"name": "https-metrics", "containerPort": 8080}]
    assert served["name"] == {"proxy": "kube-rbac-proxy"}.get(
        mode, containers[0]["name"]
    )


def test_the_proxy_guards_what_the_secure_port_guards() -> None:
    """kube-rbac-proxy's own configuration, never run here: it is not to be had."""
    (configured,) = rendered("proxy", "ConfigMap")
    asked = yaml.safe_load(configured["data"]["config.yaml"])["authorization"]
    usual = options.read(flags.parse(main.FLAGS, []), {}, OPENSTACK).guarded_by
    assert asked["resourceAttributes"] == {
        "namespace": usual.namespace,
        "apiGroup": usual.group,
        "apiVersion": usual.version,
        "resource": usual.resource,
        "subresource": usual.subresource,
        "name": usual.name,
    }


def without_deckhouse(item: Any) -> Any:
    """Return an object without what deckhouse.enabled adds: labels, and its names."""
    prefix = "d8:cloud-provider-openstack:"
    text = json.dumps(item).replace(f"{prefix}{COMPONENT}", COMPONENT)
    bare = json.loads(text)
    bare["metadata"].pop("labels", None)
    return bare


@pytest.mark.parametrize("mode", MODES)
def test_the_rights_are_those_of_the_tests(mode: str) -> None:
    """The lab runs the program with these files; each is there with its feature."""
    arguments = SNAPSHOTS[mode].all_values(ROOT)
    manages = arguments["storageClasses"]["manage"]
    creates = arguments["createDiscoverySecret"]
    assert (manages, creates) == EXPECTED[mode]
    text = discoverer.permissions(
        manages_classes=manages, creates_secret=creates, reader=False
    )
    expected = list(yaml.safe_load_all(text))
    for item in expected:
        assert item in map(without_deckhouse, rendered(mode, item["kind"]))
    kinds = {item["kind"] for item in expected}
    more = [
        item["metadata"]["name"]
        for kind in kinds
        for item in map(without_deckhouse, rendered(mode, kind))
        if item not in expected
    ]
    assert sorted(more) == READER


@pytest.mark.parametrize("mode", MODES)
def test_who_reads_the_metrics(mode: str) -> None:
    """Deckhouse's Prometheus only with deckhouse.enabled."""
    (binding,) = (
        item
        for item in rendered(mode, "RoleBinding")
        if item["metadata"]["name"] == READER[0]
    )
    arguments = SNAPSHOTS[mode].all_values(ROOT)
    account = {"kind": "ServiceAccount", **arguments["metrics"]["reader"]}
    if arguments["deckhouse"]["enabled"]:
        account["namespace"] = "d8-monitoring"
        scraper = {"kind": "User", "name": "d8-monitoring:scraper"}
        assert binding["subjects"] == [scraper, account]
    else:
        assert binding["subjects"] == [account]


def test_templates_values_and_schema_know_the_same_keys() -> None:
    usual = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    texts = "".join(item.read_text() for item in (CHART / "templates").iterdir())
    shared = "".join(charts.library(pathlib.Path()).values())
    own, library = (
        set(re.findall(r"\.Values\.(\w+)", text)) for text in (texts, shared)
    )
    assert own <= set(usual) <= own | library
    assert set(schema["properties"]) == {*usual, "global", "library"}
    for key in ("openstack", "storageClasses", "metrics", "deckhouse"):
        assert set(schema["properties"][key]["properties"]) == set(usual[key])


@pytest.mark.parametrize("mode", MODES)
def test_what_is_secret_stays_in_the_secret(mode: str) -> None:
    """Neither arguments nor the environment's own values hold it."""
    arguments = yaml.safe_load(
        (CHART / "snapshots" / f"{mode}.values.yaml").read_text()
    )
    secrets = {"password", "applicationCredentialSecret", "username"}
    env = {item["name"]: item for item in pod(mode)["containers"][0]["env"]}
    for key in secrets & set(arguments["openstack"]):
        (name,) = (
            name
            for name, item in env.items()
            if item.get("valueFrom", {}).get("secretKeyRef", {}).get("key") == key
        )
        assert "value" not in env[name]
    assert {name for name, item in env.items() if "value" in item} <= {
        "POD_IP",
        "CLUSTER_UUID",
        "OS_CACERT",
    }
