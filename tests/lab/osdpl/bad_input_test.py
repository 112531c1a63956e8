"""Invalid OpenStackDeployments: each is refused with field, value and what is valid."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import control_plane, helm, pexes, places, testing
from lib.lab.osdpl import chart_sources, deployment, stage
from lib.lab.osdpl.stage import Stage

Spec = dict[str, Any]
PATIENCE_S = 60
SECRET = "s3cret-of-the-test"
PULL = {"value_from": {"secret_key_ref": {"name": "absent", "key": "password"}}}


@dataclasses.dataclass(frozen=True)
class Row:
    """One mistake. words: in the message. by_schema: the API server refuses it."""

    name: str
    change: Callable[[Spec], object]
    words: tuple[str, ...]
    by_schema: bool = False


def values(chart: Mapping[str, Any]) -> Callable[[Spec], object]:
    """Return a change that sets values of the chart keystone."""
    services = {"identity": {"keystone": {"values": chart}}}
    return lambda spec: spec.update(services=services)


def source(url: str, **release: str) -> Callable[[Spec], object]:
    """Return a change of the chart source, or of the version of all charts."""

    def change(spec: Spec) -> None:
        common = spec["common"]
        if url:
            common["charts"]["repositories"][0]["url"] = url
        for group in ("openstack", "infra"):
            common[group] = {**common[group], "releases": release or {"version": "x"}}

    return change


ROWS = (
    Row(
        "wrong enum",
        lambda spec: spec.update(preset="huge"),
        ("spec.preset", "huge", "core"),
        by_schema=True,
    ),
    Row(
        "wrong type",
        lambda spec: spec.update(draft="maybe"),
        ("spec.draft", "boolean"),
        by_schema=True,
    ),
    Row(
        "missing field",
        lambda spec: spec.pop("public_domain_name"),
        ("spec.public_domain_name", "Required"),
        by_schema=True,
    ),
    Row(
        "unknown service",
        lambda spec: spec["features"].update(services=["teleport"]),
        ("spec.features.services", "teleport"),
        by_schema=True,
    ),
    Row(
        "unknown field",
        lambda spec: spec.update(colour="blue"),
        ("colour",),
        by_schema=True,
    ),
    Row(
        "version without images",
        lambda spec: spec.update(openstack_version="queens"),
        ("spec.openstack_version", "queens", "gazpacho"),
    ),
    Row(
        "merge of different types",
        values({"pod": "three"}),
        ("spec.services.identity.keystone.values.pod", "object", "string"),
    ),
    Row(
        "reference to an absent Secret",
        lambda spec: spec.update(
            features={
                **spec["features"],
                "ssl": {
                    "public_endpoints": {
                        "ca_cert": PULL,
                        "api_cert": SECRET,
                        "api_key": SECRET,
                    }
                },
            }
        ),
        ("spec.features.ssl.public_endpoints.ca_cert", "absent"),
    ),
    Row(
        "source that does not answer",
        source("http://127.0.0.1:9", version="2026.1.0"),
        ("http://127.0.0.1:9",),
    ),
    Row("version that the source lacks", source("", version="1.0.0"), ("1.0.0",)),
)


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[Stage]:
    """Run a cluster and the controller until the last test of this file."""
    with stage.opened(where, pexes.beside(pexes.OSDPL), testing.shown()) as opened:
        opened.start()
        yield opened


@pytest.fixture(scope="module")
def address(where: places.Places) -> str:
    """Return the address of the lab's charts."""
    return chart_sources.serve_repository(where)


def forget(site: Stage) -> None:
    """Delete the OpenStackDeployment; wait until the controller has let it go."""
    site.delete(deployment.DEPLOYMENTS, deployment.NAME)
    site.wait(
        "the OpenStackDeployment is deleted",
        lambda: site.get(deployment.DEPLOYMENTS, deployment.NAME) is None,
        PATIENCE_S,
    )


def refusal(site: Stage) -> str:
    """Return reasons and messages of the conditions that are False."""
    rows = [site.condition(kind) for kind in ("Accepted", "Applied")]
    return " ".join(
        f"{row['reason']}: {row['message']}"
        for row in rows
        if row.get("status") == "False"
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_mistake_is_named(row: Row, site: Stage, address: str) -> None:
    document = deployment.manifest(address)
    row.change(document["spec"])
    if row.by_schema:
        with pytest.raises(kube_errors.KubeError) as refused:
            strictly(site, document)
        assert_all(row.words, str(refused.value))
        return
    site.apply(document)
    try:
        site.wait(
            f"{row.name}: a condition with {row.words}",
            lambda: all(word in refusal(site) for word in row.words),
            PATIENCE_S,
        )
        message = refusal(site)
        print(f"{row.name}: {message[:200]}")
        assert SECRET not in message
        assert SECRET not in site.log()
        assert not any(number for number in site.revisions().values())
    finally:
        forget(site)


def strictly(site: Stage, document: Mapping[str, Any]) -> None:
    """Create it as kubectl does, which asks for unknown fields to be refused."""
    site.api.create(
        deployment.DEPLOYMENTS,
        json.dumps(document).encode(),
        deployment.NAMESPACE,
        timeout_s=stage.TIMEOUT_S,
        query={"fieldValidation": "Strict"},
    )


def assert_all(words: tuple[str, ...], text: str) -> None:
    missing = [word for word in words if word not in text]
    assert missing == [], text


def test_a_release_of_another_owner_is_left_alone(
    site: Stage, address: str, where: places.Places
) -> None:
    chart = where.state / "mine"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: mine, version: 1.0.0}")
    admin = control_plane.admin_kubeconfig(where)
    space = ("--namespace", deployment.NAMESPACE)
    helm.run(where, ("install", "etcd", chart, *space), admin)
    site.apply(deployment.manifest(address))
    try:
        site.wait(
            "the conflict is reported",
            lambda: "release etcd" in refusal(site) and "another" in refusal(site),
            PATIENCE_S,
        )
        secrets = [
            item["metadata"]["name"]
            for item in site.items(resources.SECRETS)
            if item["metadata"]["name"].startswith("sh.helm.release.v1.etcd.")
        ]
        assert secrets == ["sh.helm.release.v1.etcd.v1"]
    finally:
        helm.run(where, ("uninstall", "etcd", *space), admin)
        forget(site)
