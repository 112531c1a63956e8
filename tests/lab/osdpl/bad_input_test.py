"""Invalid input: one condition, Event and log entry name field, value and remedy.

No secret is in any of them, and what is not affected goes on.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.kube import errors as kube_errors
from lib.kube import events, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.charts import helm
from lib.lab.kube import control_plane
from lib.lab.osdpl import chart_set, chart_sources, controller, deployment
from lib.osdpl.api import references
from tests.harness import testing
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import OperatorStage

Spec = dict[str, Any]
SECRET = "s3cret-of-the-test"
ROUTINE = ("Applying", "Waiting", "Deleting", "Draft", "NotAccepted")
STORED = "certificates-of-the-test"
REVIEWS = ("tokenreviews", "subjectaccessreviews")


@dataclasses.dataclass(frozen=True)
class Row:
    """One mistake.

    words: in the message. reason: of the condition. by_schema: the API server refuses
    it. installed: a release that is installed nevertheless.
    """

    name: str
    change: Callable[[Spec], object]
    words: tuple[str, ...]
    by_schema: bool = False
    reason: str = "InvalidSpec"
    installed: str = ""


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


def certificate(secret: str, key: str) -> Callable[[Spec], object]:
    """Return a change that takes a certificate from a Secret."""
    reference = {"value_from": {"secret_key_ref": {"name": secret, "key": key}}}
    endpoints = {"ca_cert": reference, "api_cert": SECRET, "api_key": SECRET}

    def change(spec: Spec) -> None:
        spec["features"]["ssl"] = {"public_endpoints": endpoints}

    return change


def digest(chart: str, pinned: str) -> Callable[[Spec], object]:
    """Return a change that pins the digest of a chart of the infrastructure."""

    def change(spec: Spec) -> None:
        releases = dict(spec["common"]["infra"]["releases"])
        releases[chart] = {"version": chart_set.VERSION, "digest": pinned}
        spec["common"]["infra"] = {**spec["common"]["infra"], "releases": releases}

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
        ("spec.colour", "must be one of the known fields: artifacts, common"),
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
        certificate("absent", "password"),
        ("spec.features.ssl.public_endpoints.ca_cert", "absent", "existing Secret"),
        reason="SecretMissing",
    ),
    Row(
        "reference to an absent key",
        certificate(STORED, "absent-key"),
        ("spec.features.ssl.public_endpoints.ca_cert", "absent-key", "its keys: tls"),
        reason="SecretMissing",
    ),
    Row(
        "source that does not answer",
        source("http://127.0.0.1:9", version="2026.1.0"),
        ("http://127.0.0.1:9", "database", "compute"),
        reason="Failed",
    ),
    Row(
        "version that no contract covers",
        source("", version="1.0.0"),
        ("releases.version", "1.0.0", "2025.1.0 on"),
        reason="Refused",
    ),
    Row(
        "version that the source lacks",
        source("", version="2026.1.7"),
        ("2026.1.7", "keystone"),
        reason="Failed",
    ),
    Row(
        "chart that the source lacks",
        source("/var", version="2026.1.0"),
        ("chart etcd: not found in /var", "chart keystone"),
        reason="Failed",
    ),
    Row(
        "digest of another chart",
        digest("etcd", f"sha256:{'0' * 64}"),
        ("etcd", f"sha256:{'0' * 64}"),
        reason="Failed",
        installed="openstack-memcached",
    ),
    Row(
        "chart that does not render",
        lambda spec: spec.update(
            services={"coordination": {"etcd": {"values": {"volume": {"size": ""}}}}}
        ),
        ("etcd", "values: volume.size is empty"),
        reason="Failed",
        installed="openstack-memcached",
    ),
)


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[OperatorStage]:
    """Run a cluster and the controller until the last test of this file."""
    with stage.opened(where, pexes.beside(pexes.OSDPL), testing.shown()) as opened:
        secret = {
            "metadata": {
                "name": STORED,
                "labels": {references.LABEL: references.LABEL_VALUE},
            },
            "stringData": {"tls": SECRET},
        }
        opened.api.create(
            resources.SECRETS,
            json.dumps(secret).encode(),
            deployment.NAMESPACE,
            timeout_s=stage.TIMEOUT_S,
        )
        opened.start()
        yield opened


@pytest.fixture(scope="module")
def address(where: places.Places) -> str:
    """Return the address of the lab's charts."""
    return chart_sources.serve_repository(where)


def refusal(site: OperatorStage, name: str = deployment.NAME) -> tuple[str, str]:
    """Return reason and message of the condition that says why; empty: none does."""
    for kind in ("Accepted", "Applied"):
        row = site.condition(kind, name)
        if row.get("status") == "False" and row["reason"] not in ROUTINE:
            return row["reason"], row["message"]
    return "", ""


def reported(
    site: OperatorStage,
    reason: str,
    words: tuple[str, ...],
    name: str = deployment.NAME,
) -> str:
    """Wait until condition, Event and log entry name the problem; return the message.

    Each of the two exists once, and no other Event of the type Warning does.
    """
    site.wait(
        f"a condition {reason} with {words}",
        lambda: refusal(site, name)[0] == reason
        and all(word in refusal(site, name)[1] for word in words),
    )
    message = refusal(site, name)[1]
    owner = site.get(deployment.DEPLOYMENTS, name)
    assert owner is not None
    uid = owner["metadata"]["uid"]
    recorded = site.wait(f"an Event {reason}", lambda: warnings(site, uid))
    assert [(event["reason"], event["message"]) for event in recorded] == [
        (reason, events.bounded(message))
    ]
    entries = [
        entry
        for entry in entries_of(site.log())
        if entry.get("msg") == "condition changed" and entry["message"] == message
    ]
    print(f"{reason}: {message[:200]}: {len(recorded)} Event, {len(entries)} log entry")
    assert len(entries) == 1
    assert SECRET not in json.dumps(recorded)
    assert SECRET not in site.log()
    return message


def entries_of(log: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a log."""
    for line in log.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def warnings(site: OperatorStage, uid: str) -> list[dict[str, Any]]:
    """Return the Events of the type Warning about an object."""
    return [
        event
        for event in site.items(resources.EVENTS)
        if event["involvedObject"].get("uid") == uid and event["type"] == "Warning"
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_mistake_is_named(row: Row, site: OperatorStage, address: str) -> None:
    document = deployment.manifest(address)
    row.change(document["spec"])
    if row.by_schema:
        with pytest.raises(kube_errors.KubeError) as refused:
            strictly(site, document)
        assert_all(row.words, str(refused.value))
        return
    site.apply(document)
    try:
        message = reported(site, row.reason, row.words)
        assert SECRET not in message
        if row.installed:
            site.wait(
                f"{row.installed} is installed nevertheless",
                lambda: row.installed in site.revisions(),
            )
        elif row.reason != "Failed" or "http" in message:
            assert not any(number for number in site.revisions().values())
    finally:
        site.forget()


def strictly(site: OperatorStage, document: Mapping[str, Any]) -> None:
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
    site: OperatorStage, address: str, where: places.Places
) -> None:
    chart = where.state / "mine"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: mine, version: 1.0.0}")
    admin = control_plane.admin_kubeconfig(where)
    space = ("--namespace", deployment.NAMESPACE)
    helm.run(where, ("install", "etcd", chart, *space), admin)
    site.apply(deployment.manifest(address))
    try:
        reported(site, "Failed", ("release etcd", "another program"))
        secrets = [
            item["metadata"]["name"]
            for item in site.items(resources.SECRETS)
            if item["metadata"]["name"].startswith("sh.helm.release.v1.etcd.")
        ]
        assert secrets == ["sh.helm.release.v1.etcd.v1"]
    finally:
        helm.run(where, ("uninstall", "etcd", *space), admin)
        site.forget()


def test_a_second_deployment_is_refused(site: OperatorStage, address: str) -> None:
    draft = deployment.manifest(address)
    draft["spec"]["draft"] = True
    site.apply(draft)
    time.sleep(1.1)  # the age of objects has seconds
    site.apply(deployment.manifest(address, "second"))
    try:
        words = (
            f"{deployment.NAMESPACE}/{deployment.NAME}",
            "OpenStackDeployment per cluster",
        )
        reported(site, "SecondDeployment", words, "second")
        assert refusal(site) == ("", "")
    finally:
        site.forget("second")
        site.forget()


def test_a_missing_permission_is_named(site: OperatorStage, address: str) -> None:
    """Also when it is tried again; with the permission it goes on."""
    name = controller.NAME
    role = site.get(resources.ROLES, name)
    assert role is not None
    rules = [rule for rule in role["rules"] if "helmbundles" not in rule["resources"]]
    assert len(rules) < len(role["rules"])
    put_rules(site, rules)
    document = deployment.manifest(address)
    document["spec"]["size"] = "single"
    site.apply(document)
    try:
        reported(site, "Forbidden", ("permission", "helmbundles"))
        assert not site.revisions()
        put_rules(site, role["rules"])
        site.wait("it goes on", lambda: refusal(site) == ("", ""))
    finally:
        put_rules(site, role["rules"])
        site.forget()


def put_rules(site: OperatorStage, rules: list[Any]) -> None:
    site.api.patch(
        resources.ROLES,
        controller.NAME,
        json.dumps({"rules": rules}).encode(),
        deployment.NAMESPACE,
        timeout_s=stage.TIMEOUT_S,
    )


def label(site: OperatorStage, level: str) -> None:
    """Set the Pod Security level that the namespace enforces."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    site.api.patch(
        resources.NAMESPACES,
        deployment.NAMESPACE,
        json.dumps({"metadata": {"labels": labels}}).encode(),
        timeout_s=stage.TIMEOUT_S,
    )


def restart(site: OperatorStage, *extra: str) -> None:
    """Start the controller again; a check that has passed is not repeated."""
    site.stop()
    controller.start(site.where, site.pex, extra)


def test_pod_security_is_named_and_nothing_is_installed(
    site: OperatorStage, address: str
) -> None:
    label(site, "baseline")
    restart(site)
    before = site.secrets().keys()
    site.apply(deployment.manifest(address))
    try:
        reported(
            site, "PodSecurity", ("pod-security.kubernetes.io/enforce=privileged",)
        )
        assert not site.revisions()
        assert site.secrets().keys() <= before, "nothing new"
    finally:
        label(site, "privileged")
        site.forget()


HELMS = (
    ("", ("--helm", "absent-helm", "No such file")),
    ("#!/bin/sh\necho v3.10.0\n", ("v3.10.0", "3.18 or later")),
)
"""Programs that are no helm of today, and what is reported."""


def test_a_helm_that_cannot_be_used_is_named(site: OperatorStage, address: str) -> None:
    """It is missing, or too old."""
    try:
        for script, words in HELMS:
            program = site.where.state / ("old-helm" if script else "absent-helm")
            if script:
                program.write_text(script)
                program.chmod(0o755)
            restart(site, f"--helm={program}")
            site.apply(deployment.manifest(address))
            reported(site, "HelmUnusable", words)
            assert not site.revisions()
            site.forget()
    finally:
        site.forget()
        restart(site)


def test_a_namespace_that_does_not_exist_is_named(site: OperatorStage) -> None:
    """No OpenStackDeployment can be in it: there is a log entry, and nothing else."""
    absent = "absent-namespace"
    site.stop()
    logged, asked = len(site.log()), len(site.requests())
    try:
        controller.launch(site.where, site.pex, (f"--namespace={absent}",))
        site.wait(
            "a log entry names the namespace",
            lambda: [
                entry
                for entry in entries_of(site.log()[logged:])
                if absent in json.dumps(entry)
            ],
        )
        writes = [
            row
            for row in site.requests()[asked:]
            if row.verb in ("create", "update", "patch", "delete") and row.code < 400
        ]
        assert {row.resource for row in writes} <= set(REVIEWS)
        assert not controller.is_ready(site.where)
    finally:
        site.stop()
        site.start()


def test_another_namespace_is_named(site: OperatorStage, address: str) -> None:
    """The OpenStackDeployment is in a namespace that is not served."""
    elsewhere = "elsewhere"
    body = {"metadata": {"name": elsewhere}}
    site.api.create(
        resources.NAMESPACES, json.dumps(body).encode(), timeout_s=stage.TIMEOUT_S
    )
    document = deployment.manifest(address)
    document["metadata"]["namespace"] = elsewhere
    site.apply(document)

    def condition() -> str:
        document_ = json.loads(
            site.api.read(
                deployment.DEPLOYMENTS,
                deployment.NAME,
                elsewhere,
                timeout_s=stage.TIMEOUT_S,
            )
        )
        rows = document_.get("status", {}).get("conditions", ())
        return " ".join(f"{row['reason']}: {row['message']}" for row in rows)

    try:
        site.wait("a condition", lambda: "NamespaceNotServed" in condition())
        assert_all((elsewhere, "--namespace", deployment.NAMESPACE), condition())
    finally:
        site.api.delete(
            deployment.DEPLOYMENTS,
            deployment.NAME,
            elsewhere,
            timeout_s=stage.TIMEOUT_S,
        )
