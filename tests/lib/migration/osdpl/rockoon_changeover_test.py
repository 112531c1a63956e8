"""What happens to each release of Rockoon, and what it left in the cluster."""

import base64
import json
import pathlib
import re
from typing import Any

import pytest

from lib.helm import releases
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.resources import Resource
from lib.migration.osdpl import (
    fates,
    rockoon_changeover,
    rockoon_differences,
    rockoon_leftovers,
)
from lib.migration.osdpl.fates import Fate
from lib.osdpl.api import spec
from lib.osdpl.reconcile import decide, snapshot
from lib.osdpl.values import ignored, layers, render, required_secrets
from lib.process import yaml_documents

NAMESPACE = "openstack"
SUPPORTED = ("epoxy", "flamingo", "gazpacho")
OWN = "lcm.mirantis.com/owner"
FORK = "0.1.0-mcp-4821"
Json = dict[str, Any]


@pytest.fixture()
def api() -> fake_api.FakeApi:
    return fake_api.FakeApi()


def put(
    api: fake_api.FakeApi, kind: Resource, name: str, namespace: str = "", **parts: Any
) -> None:
    """Create an object of Rockoon."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    api.put(kind, {"metadata": metadata | parts.pop("metadata", {}), **parts})


def put_deployment(api: fake_api.FakeApi, version: str = "flamingo") -> None:
    """Create an OpenStackDeployment as Rockoon serves it."""
    put(
        api,
        resources.OPENSTACK_DEPLOYMENTS,
        "osh-dev",
        NAMESPACE,
        spec={"openstack_version": version},
        metadata={
            "finalizers": [
                "lcm.mirantis.com/rockoon.osdpl-finalizer",
                "lcm.mirantis.com/rockoon.health-finalizer",
                "example.com/backup",
            ]
        },
    )


def put_release(
    api: fake_api.FakeApi, name: str, version: str = FORK, **labels: str
) -> None:
    """Create the Secret of a deployed release."""
    chart = {"metadata": {"name": name.removeprefix("openstack-"), "version": version}}
    content = releases.encode(
        {"name": name, "namespace": NAMESPACE, "version": 1, "chart": chart}
    )
    put(
        api,
        resources.SECRETS,
        f"sh.helm.release.v1.{name}.v1",
        NAMESPACE,
        type=releases.TYPE,
        data={"release": base64.b64encode(content).decode()},
        metadata={
            "labels": {
                **{"owner": "helm", "name": name, "version": "1"},
                **{"status": "deployed", **labels},
            }
        },
    )


def put_rockoon(api: fake_api.FakeApi, name: str, namespace: str, **spec: Any) -> None:
    """Create a Deployment of the reference."""
    container = {"name": "osdpl", "command": ["kopf", "run", "-m", "rockoon.x"]}
    template = {"spec": {"containers": [container]}}
    put(
        api,
        resources.DEPLOYMENTS,
        name,
        namespace,
        spec={"replicas": 1, "template": template, **spec},
    )


def read(api: fake_api.FakeApi) -> rockoon_changeover.RockoonChangeover:
    """Read the migration of the cluster."""
    planned = rockoon_changeover.read(api, NAMESPACE, SUPPORTED, OWN, 1.0)
    assert planned is not None
    return planned


def test_a_namespace_without_an_object_has_no_migration(api: fake_api.FakeApi) -> None:
    assert rockoon_changeover.read(api, NAMESPACE, SUPPORTED, OWN, 1.0) is None


@pytest.mark.parametrize(
    ("name", "version", "labels", "openstack", "fate", "reason"),
    [
        pytest.param(
            *("openstack-keystone", FORK, {}, "flamingo"),
            *(Fate.ADOPTED, "databases and passwords are kept"),
            id="a program of a fork",
        ),
        pytest.param(
            *("openstack-libvirt", FORK, {}, "flamingo"),
            *(Fate.ADOPTED, "--cascade=orphan"),
            id="an agent of a fork",
        ),
        pytest.param(
            *("openstack-mariadb", FORK, {}, "flamingo"),
            *(Fate.REBUILT, "claim templates"),
            id="a database of a fork",
        ),
        pytest.param(
            *("openstack-mariadb", "2025.2.0+1a2b3c4d5", {}, "flamingo"),
            *(Fate.ADOPTED, "2025.2.0+1a2b3c4d5 is of openstack-helm"),
            id="a database of the same charts",
        ),
        pytest.param(
            *("openstack-nova-rabbitmq", FORK, {}, "flamingo"),
            *(Fate.IMPOSSIBLE, "no chart"),
            id="a bus of one service",
        ),
        pytest.param(
            *("openstack-cinder", FORK, {}, "flamingo"),
            *(Fate.IMPOSSIBLE, "not supported yet"),
            id="a service that is not supported",
        ),
        pytest.param(
            *("openstack-cinder", "2026.1.0", {}, "flamingo"),
            *(Fate.IMPOSSIBLE, "not supported yet"),
            id="a service that is not supported, of the same charts",
        ),
        pytest.param(
            *("openstack-keystone", FORK, {}, "caracal"),
            *(Fate.IMPOSSIBLE, "OpenStack caracal: upgrade with Rockoon to epoxy"),
            id="an OpenStack that is too old",
        ),
        pytest.param(
            *("openstack-keystone", FORK, {}, ""),
            *(Fate.IMPOSSIBLE, "OpenStack without a version"),
            id="an object without a version",
        ),
        pytest.param(
            *("openstack-keystone", "2026.1.0", {OWN: "x"}, "gazpacho"),
            *(Fate.OWN, "osdpl-controller installed it"),
            id="a release that is adopted already",
        ),
    ],
)
def test_each_release_has_a_fate_and_a_reason(
    api: fake_api.FakeApi,
    name: str,
    version: str,
    labels: dict[str, str],
    openstack: str,
    fate: Fate,
    reason: str,
) -> None:
    put_deployment(api, openstack)
    put_release(api, name, version, **labels)
    (row,) = read(api).rows
    assert (row.release, row.fate) == (name, fate)
    assert reason in row.reason


def test_a_release_that_cannot_be_decoded_is_judged_by_its_name(
    api: fake_api.FakeApi,
) -> None:
    put_deployment(api)
    put_release(api, "openstack-mariadb")
    name = "sh.helm.release.v1.openstack-mariadb.v1"
    api.patch(
        resources.SECRETS, name, b'{"data":{"release":"AAAA"}}', NAMESPACE, timeout_s=1
    )
    (row,) = read(api).rows
    assert row.fate is Fate.REBUILT


def put_leftovers(api: fake_api.FakeApi) -> None:
    """Create what Rockoon leaves, beside objects of others."""
    for name, group in (("rockoon-admission", "lcm.mirantis.com"), ("other", "apps")):
        rules = [{"apiGroups": [group], "resources": ["*"]}]
        put(api, resources.VALIDATING_WEBHOOKS, name, webhooks=[{"rules": rules}])
    own = [{"rules": [{"apiGroups": ["lcm.mirantis.com"]}]}]
    put(api, resources.VALIDATING_WEBHOOKS, "osdpl-controller", webhooks=own)
    put(api, resources.VALIDATING_WEBHOOKS, "policy-engine", webhooks=own)
    service = {"service": {"namespace": "lcm", "name": "mosk-rockoon-admission"}}
    called = [{**own[0], "clientConfig": service}]
    put(api, resources.VALIDATING_WEBHOOKS, "admission", webhooks=called)
    for name in ("rockoon.osdpl", "another-operator"):
        put(api, rockoon_leftovers.PEERINGS[0], name, NAMESPACE)


def names(api: fake_api.FakeApi) -> list[str]:
    """Return what the reference left, as messages name it."""
    return [str(row) for row in rockoon_leftovers.read(api, 1.0).objects]


LEFT = [
    "ValidatingWebhookConfiguration admission",
    "ValidatingWebhookConfiguration rockoon-admission",
    "KopfPeering openstack/rockoon.osdpl",
    "OpenStackDeployment openstack/osh-dev",
]


def test_only_what_the_reference_left_is_named(api: fake_api.FakeApi) -> None:
    put_deployment(api)
    put_leftovers(api)
    assert names(api) == LEFT


def test_only_what_the_reference_left_is_removed(api: fake_api.FakeApi) -> None:
    put_deployment(api)
    put_leftovers(api)
    for row in rockoon_leftovers.read(api, 1.0).objects:
        rockoon_leftovers.remove(api, row, 1.0)
    assert names(api) == []
    body = api.read(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", NAMESPACE, timeout_s=1)
    assert json.loads(body)["metadata"]["finalizers"] == ["example.com/backup"]
    for kind, name, namespace in (
        (resources.VALIDATING_WEBHOOKS, "other", None),
        (resources.VALIDATING_WEBHOOKS, "osdpl-controller", None),
        (resources.VALIDATING_WEBHOOKS, "policy-engine", None),
        (rockoon_leftovers.PEERINGS[0], "another-operator", NAMESPACE),
    ):
        api.read(kind, name, namespace, timeout_s=1)


def test_an_object_that_was_created_again_is_not_removed(api: fake_api.FakeApi) -> None:
    put_leftovers(api)
    (webhook, *_) = rockoon_leftovers.read(api, 1.0).objects
    api.delete(webhook.kind, webhook.name, timeout_s=1)
    put(api, webhook.kind, webhook.name, webhooks=[])
    with pytest.raises(errors.KubeError):
        rockoon_leftovers.remove(api, webhook, 1.0)
    api.read(webhook.kind, webhook.name, timeout_s=1)


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        pytest.param("rockoon", "osh-system", id="the usual name"),
        pytest.param("mosk-rockoon", "lcm", id="a name of another release"),
    ],
)
def test_the_reference_is_found_by_what_it_runs(
    api: fake_api.FakeApi, name: str, namespace: str
) -> None:
    put_deployment(api)
    put_rockoon(api, name, namespace, replicas=0)
    put(api, resources.DEPLOYMENTS, "keystone-api", NAMESPACE, spec={})
    planned = read(api)
    assert planned.leftovers.programs == ((f"{namespace}/{name}", 0),)
    commands = [word for _, words in planned.steps for word in words]
    assert f"kubectl -n {namespace} scale deployment {name} --replicas=0" in commands
    assert f"kubectl -n {namespace} delete deployment {name}" in commands


def test_state_stores_are_adopted_first(api: fake_api.FakeApi) -> None:
    put_deployment(api)
    for name in ("openstack-keystone", "openstack-mariadb", "openstack-cinder"):
        put_release(api, name)
    commands = [word for _, words in read(api).steps for word in words]
    adopted = [
        word.rpartition("=")[2] for word in commands if "mooring.io/adopt" in word
    ]
    assert adopted == ["openstack-mariadb", "openstack-keystone"]


PAGE = pathlib.Path("docs/migrate-osdpl.md")


def test_the_example_of_the_page_is_accepted() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    document = yaml_documents.read(str(PAGE), text)[0]
    assert isinstance(document, dict)
    deployment = spec.parse(document)
    effective = layers.effective(deployment.spec)
    inputs = render.Inputs(
        deployment=deployment,
        credentials=required_secrets.placeholders(layers.services(effective)),
    )
    desired = snapshot.Desired(deployment, spec=effective)
    assert decide.violations(document, desired, None, {}) == ()
    assert render.render(inputs).refusals == ()
    assert ignored.fields(deployment.spec, layers.services(effective)) == ()


def test_the_page_has_each_release_and_difference() -> None:
    groups: dict[tuple[str, str], list[str]] = {}
    for name, (fate, reason) in fates.FATES.items():
        groups.setdefault((fate, reason), []).append(name)
    rows = {
        f"| {', '.join(releases)} | {fate} | {reason} |"
        for (fate, reason), releases in groups.items()
    }
    rows |= {
        f"| {row.setting} | {row.before} | {row.after} | {row.effect} |"
        for row in rockoon_differences.DIFFERENCES
    }
    written = {line for line in PAGE.read_text().splitlines() if line[:1] == "|"}
    heads = {line for line in written if "---" in line or line.endswith("effect |")}
    assert rows == written - heads - {"| release | state | reason |"}
