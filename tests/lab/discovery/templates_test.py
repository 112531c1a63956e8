"""What Go makes of our templates is what our own functions make."""

import base64
import dataclasses
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.discovery.openstack import (
    capi,
    checksums,
    documents,
    machine_class,
    model,
    registration,
    templates,
)
from lib.process import config
from tests.lab.discovery import go_templates
from tests.lab.discovery.go_templates import Job, Render, texts

CLUSTER = model.ClusterFacts(
    "f49dd1c3-a63a-4565-a06c-625e35587eab", "10.111.0.0/16", "sea"
)
CONNECTION = model.Connection(
    auth_url="https://keystone.example:5000/v3",
    domain_name="Default",
    username="captain",
    password="s3cr3t: \"{{ no }}\" 'ж' # \\",
    region="north",
    tenant_name="fleet",
)
CONNECTIONS = [
    CONNECTION,
    dataclasses.replace(CONNECTION, tenant_name="", tenant_id="7", ca_cert="PEM\n<&>"),
]
INSTANCES = [
    model.InstanceDefaults(image_name="ubuntu", main_network="inner"),
    model.InstanceDefaults(
        "sea", "ubuntu 22.04", "inner", ("storage", "inner"), ("sea",)
    ),
]
PROVIDERS = [
    model.ProviderSettings(
        connection,
        internal_network_names=("inner", "local"),
        external_network_names=external,
        external_network_dhcp=dhcp,
        instances=instances,
        pod_network_mode=mode,
        tags=tags,
    )
    for ((connection, instances), mode, (dhcp, external, tags)) in itertools.product(
        zip(CONNECTIONS, INSTANCES, strict=True),
        model.PodNetworkMode,
        [(True, (), {}), (False, ("out", "public"), {"owner": "port", "true": "1"})],
    )
]
CLASSES: list[dict[str, object]] = [
    {"flavorName": "m1.large"},
    {"flavorName": "1e3", "imageName": "", "rootDiskSize": 0, "mainNetwork": ""},
    {
        "flavorName": "Большой: #1",
        "imageName": "debian",
        "rootDiskSize": 20,
        "mainNetwork": "local",
        "additionalNetworks": ["inner", "local", "on"],
        "additionalSecurityGroups": ["web", "sea", "12:30"],
        "additionalTags": {"owner": "me", "zone": "ж", "b": "no"},
        "capacity": {"cpu": "4", "memory": "8Gi"},
    },
]
CAPI_CLASSES: list[dict[str, object]] = [
    *CLASSES,
    {"flavorName": "m1", "tags": ["fast", "ж" * 40], "preemptible": True},
]
REFUSED: list[dict[str, object]] = [
    {"flavorName": "m1", "tags": ["a,b"]},
    {"flavorName": "m1", "tags": ["a/b"]},
    {"flavorName": "m1", "tags": ["ж" * 61]},
]
NO_DEFAULTS = dataclasses.replace(PROVIDERS[0], instances=model.InstanceDefaults())


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return Go's template engine with the functions of Helm."""
    return go_templates.engine(tmp_path_factory.mktemp("templates"))


def group(spec: Mapping[str, object], rollout: str = "") -> model.Group:
    return model.Group("worker", "zonea", documents.instance_class(spec), rollout)


def contract(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(templates.text("capi", name))
    return read


def capi_job(
    name: str,
    provider: model.ProviderSettings,
    spec: Mapping[str, object],
    **more: object,
) -> Job:
    cluster = {
        "uuid": CLUSTER.uuid,
        "podSubnet": CLUSTER.pod_subnet,
        "name": "openstack",
        "namespace": "d8-cloud-instance-manager",
    }
    data = {
        "provider": registration.description(provider),
        "cluster": cluster,
        "instanceClass": spec,
        "nodeGroup": {"name": "worker"},
        "zone": "zonea",
        **more,
    }
    return {"template": contract(name)["template"], "strict": True, "data": data}


def mcm_job(
    name: str,
    provider: model.ProviderSettings,
    spec: Mapping[str, object],
    rollout: str = "",
) -> Job:
    described = {"openstack": registration.description(provider)}
    values = {
        "nodeManager": {"internal": {"cloudProvider": described}},
        "global": {
            "discovery": {
                "clusterUUID": CLUSTER.uuid,
                "podSubnet": CLUSTER.pod_subnet,
            }
        },
    }
    node_group = {"name": "worker", "instanceClass": spec, "manualRolloutID": rollout}
    data = {
        "Chart": {"Name": "node-manager"},
        "Values": values,
        "nodeGroup": node_group,
        "zoneName": "zonea",
    }
    return {"template": templates.text("mcm", name), "strict": False, "data": data}


def plain(value: object) -> object:
    """Return a value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def test_machine_templates(render: Render) -> None:
    """Cluster API: every kind of provider with every kind of class, no metadata."""
    cases = list(itertools.product(PROVIDERS, CAPI_CLASSES))
    rendered = texts(render(capi_job("template.yaml", *case) for case in cases))
    for (provider, spec), text in zip(cases, rendered, strict=True):
        expected = capi.machine_spec(CLUSTER, provider, group(spec))
        assert yaml.safe_load(text) == {
            "apiVersion": capi.API_VERSION,
            "kind": capi.TEMPLATE_KIND,
            "spec": {"template": {"spec": plain(expected)}},
        }
    print(f"{len(cases)} machine templates alike")


def test_the_contract_of_machine_templates(render: Render) -> None:
    """Version, the fields that make machines anew, and the failure domain."""
    read = contract("template.yaml")
    (domain,) = texts(
        render(
            {
                **capi_job("template.yaml", PROVIDERS[0], CLASSES[0]),
                "template": read["machineDeployment"]["additionalFields"][field],
            }
            for field in ("failureDomain",)
        )
    )
    assert (read["version"], domain) == ("v2", "zonea")
    assert set(read) == {"version", "rolloutFields", "machineDeployment", "template"}
    assert set(read["rolloutFields"]) == set(checksums.CAPI_FIELDS) - {
        "manualRolloutID"
    }


def test_the_cluster_and_its_credentials(render: Render) -> None:
    """Cluster API: with and without external networks, endpoints, certificates."""
    planes: list[dict[str, object]] = [
        {},
        {"controlPlane": {"endpoints": [{"host": "192.0.2.1", "port": 6443}]}},
    ]
    cases = list(itertools.product(PROVIDERS, planes))
    jobs = [
        capi_job("cluster.yaml", connection, {}, **plane) for connection, plane in cases
    ]
    for (provider, plane), text in zip(cases, texts(render(jobs)), strict=True):
        endpoint = ("192.0.2.1", 6443) if plane else None
        assert yaml.safe_load(text) == capi.cluster_object(provider, endpoint)
    jobs = [capi_job("credentials.yaml", provider_, {}) for provider_ in PROVIDERS]
    for provider, text in zip(PROVIDERS, texts(render(jobs)), strict=True):
        expected = capi.credentials(provider.connection)
        assert decoded(yaml.safe_load(text)) == decoded(expected)
    print(f"{len(cases)} clusters and {len(jobs)} credentials alike")


def decoded(secret: dict[str, Any]) -> dict[str, Any]:
    """Return a Secret with its YAML read, which may be written in several ways."""
    data = {key: base64.b64decode(text) for key, text in secret["data"].items()}
    data["clouds.yaml"] = yaml.safe_load(data["clouds.yaml"])
    return {**secret, "data": data}


def test_machine_classes(render: Render) -> None:
    """machine-controller-manager: the class, and the Secret beside it."""
    cases = list(itertools.product(PROVIDERS, CLASSES))
    rendered = texts(render(mcm_job("machine-class.yaml", *case) for case in cases))
    for (provider, spec), text in zip(cases, rendered, strict=True):
        expected = plain(machine_class.machine_class(CLUSTER, provider, group(spec)))
        assert isinstance(expected, dict)
        del expected["metadata"]["annotations"]
        expected["metadata"]["labels"]["module"] = "node-manager"
        assert yaml.safe_load(text) == expected
    name = "config-for-machine-controller-manager.yaml"
    rendered = texts(
        render(mcm_job(name, provider_, CLASSES[0]) for provider_ in PROVIDERS)
    )
    for provider, text in zip(PROVIDERS, rendered, strict=True):
        secret = machine_class.secret(CLUSTER, provider.connection, group(CLASSES[0]))
        assert yaml.safe_load(text) == secret["data"]
    print(f"{len(cases)} machine classes alike")


def test_checksums(render: Render) -> None:
    """Go's YAML and ours are one text, whatever quotes it needs."""
    odd = ["1", "true", "y", "1e3", "08", "a: b", "- a", "2026-01-31", "ж", "a\nb", "~"]
    specs = list(CLASSES)
    for value in odd:
        specs.append({"flavorName": "m1", "imageName": value})
        specs.append({"flavorName": "m1", "additionalTags": {value: value}})
        specs.append({"flavorName": "m1", "additionalNetworks": [value, "x"]})
    cases = list(itertools.product(specs, ("", "7")))
    jobs = [
        mcm_job("machine-class.checksum", PROVIDERS[0], spec, rollout)
        for spec, rollout in cases
    ]
    for (spec, rollout), text in zip(cases, texts(render(jobs)), strict=True):
        assert text == checksums.mcm(documents.instance_class(spec), rollout), spec
    print(f"{len(cases)} checksums alike")


def test_what_can_not_be_made_fails_in_both(render: Render) -> None:
    """Tags that Nova refuses, raw tags for MCM, and no image or network at all."""
    for spec in REFUSED:
        (answer,) = render([capi_job("template.yaml", PROVIDERS[0], spec)])
        assert "must be a tag of 1 to 60 characters" in answer["error"]
        with pytest.raises(config.ConfigError, match="must be a tag of 1 to 60"):
            capi.machine_spec(CLUSTER, PROVIDERS[0], group(spec))
        (answer,) = render([mcm_job("machine-class.yaml", PROVIDERS[0], spec)])
        assert "raw server tags require Cluster API" in answer["error"]
    for job in (
        capi_job("template.yaml", NO_DEFAULTS, CLASSES[0]),
        mcm_job("machine-class.yaml", NO_DEFAULTS, CLASSES[0]),
    ):
        (answer,) = render([job])
        assert (
            "imageName: not set: must be a name, here or in the provider's"
            in answer["error"]
        )
