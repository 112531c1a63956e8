"""osdpl-controller end to end: real API server and helm, simulated workloads.

The tests of this file are one scenario on one cluster, in their order. With a checkout
of openstack-helm in MOORING_OPENSTACK_HELM they install that instead of the lab's set.
"""

import collections
import datetime
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click.testing as testing_click
import pytest
import yaml

from lib.doctor import rights
from lib.helm import cache, releases
from lib.helm import model as helm_model
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.kube import control_plane
from lib.lab.osdpl import chart_set, chart_sources, controller, deployment, view
from lib.osdpl.reconcile import bundles as bundle_status
from lib.osdpl.values import public_secrets
from mooring.commands import plan_osdpl
from tests.harness.kube import audit
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import OperatorStage

RELEASES = {
    "openstack-mariadb": "database",
    "openstack-rabbitmq": "messaging",
    "openstack-memcached": "memcached",
    "etcd": "coordination",
    "openstack-keystone": "identity",
    "openstack-glance": "image",
    "openstack-placement": "placement",
    "openstack-neutron": "networking",
    "openstack-openvswitch": "networking",
    "openstack-nova": "compute",
    "openstack-libvirt": "compute",
    "openstack-horizon": "dashboard",
}
AFTER_DATABASE = {
    "openstack-keystone",
    "openstack-glance",
    "openstack-placement",
    "openstack-neutron",
    "openstack-nova",
    "openstack-horizon",
}
REPLICAS = {
    "mariadb-server": 3,
    "openstack-memcached-memcached": 3,
    "etcd-etcd": 3,
    "keystone-api": 3,
    "glance-api": 3,
    "placement-api": 3,
    "neutron-server": 3,
    "nova-api-osapi": 3,
    "horizon": 2,
}
"""Of size tiny."""
SELECTORS = {
    "keystone-api": "openstack-control-plane",
    "neutron-dhcp-agent-default": "openstack-gateway",
    "neutron-l3-agent-default": "openstack-gateway",
    "neutron-metadata-agent-default": "openstack-gateway",
    "neutron-ovs-agent-default": "openvswitch",
    "openvswitch": "openvswitch",
    "nova-compute-default": "openstack-compute-node",
    "libvirt-libvirt-default": "openstack-compute-node",
}
CHECKOUT = "MOORING_OPENSTACK_HELM"
RSS_MAX = 120 * 1024 * 1024
PATIENCE_S = 300
QUIET_S = 6
OWNER = "meta.helm.sh/release-name"


@pytest.fixture(scope="module")
def site(site: OperatorStage) -> OperatorStage:
    """Run cluster and controller, and let the API server ask its webhook."""
    controller.install_webhook(site.where)
    return site


def test_nothing_is_installed_before_what_it_needs_is_ready(
    site: OperatorStage, source: str
) -> None:
    site.hold("mariadb/server")
    began = time.monotonic()
    site.apply(deployment.manifest(source))
    first = set(RELEASES) - AFTER_DATABASE
    site.wait(
        f"{first} are deployed",
        lambda: first <= {row.release for row in site.observe().rows if row.revision},
        poll_s=stage.OBSERVE_S,
    )
    time.sleep(3)
    assert not AFTER_DATABASE & site.revisions().keys()
    site.wait(
        "keystone is shown to wait for the database",
        lambda: "mariadb-server"
        in {row.release: row.waiting_for for row in site.observe().rows}.get(
            "openstack-keystone", ""
        ),
    )
    site.hold()
    print(f"first releases after {time.monotonic() - began:.1f} s")


def test_all_releases_are_deployed_and_all_workloads_ready(site: OperatorStage) -> None:
    began = time.monotonic()
    observed = site.wait_complete()
    print(f"the other releases took {time.monotonic() - began:.1f} s")
    assert {row.release: row.service for row in observed.rows} == RELEASES
    assert all(row.workloads for row in observed.rows)
    # One run of helm each: a second one would have made a second revision.
    assert set(site.revisions().values()) == {1}


def workloads(site: OperatorStage) -> dict[str, dict[str, Any]]:
    return {
        item["metadata"]["name"]: item["spec"]
        for kind in view.WORKLOADS
        for item in site.items(kind)
    }


def test_replicas_images_and_nodes_are_as_specified(site: OperatorStage) -> None:
    specs = workloads(site)
    assert {name: specs[name]["replicas"] for name in REPLICAS} == REPLICAS
    selectors = {
        name: next(iter(specs[name]["template"]["spec"]["nodeSelector"]))
        for name in SELECTORS
    }
    assert selectors == SELECTORS
    images = {
        container["image"]
        for spec in specs.values()
        for container in spec["template"]["spec"]["containers"]
    }
    openstack = {image for image in images if "/airshipit/" in image}
    releases = {
        image.rpartition(":")[2]
        for image in openstack
        if image.rpartition(":")[0].rpartition("/")[2]
        in ("keystone", "glance", "placement", "neutron", "nova", "horizon")
    }
    assert releases == {"2026.1-ubuntu_noble"}


def test_no_secret_is_a_public_one(site: OperatorStage, source: str) -> None:
    """Compare all Secrets of each release with the defaults of its chart."""
    charts = cache.Charts(site.where.state / "default-charts")
    live: dict[str, list[dict[str, Any]]] = {release: [] for release in RELEASES}
    others: list[dict[str, Any]] = []
    for item in site.items(resources.SECRETS):
        annotations = item["metadata"].get("annotations") or {}
        release = annotations.get("meta.helm.sh/release-name", "")
        if item["type"] != releases.TYPE:
            live.get(release, others).append({"kind": "Secret", **item})
    known: frozenset[str] = frozenset()
    findings: list[public_secrets.Finding] = []
    print(f"{'release':24} secrets defaults public")
    for release, manifests in live.items():
        public = defaults(site, charts, source, release)
        known |= public
        leaks = public_secrets.find_texts(manifests, public)
        count = len(list(public_secrets.secrets(manifests)))
        print(f"{release:24} {count:7} {len(public):8} {len(leaks):6}")
        findings += leaks
    assert {"password", "openstack-cookie"} <= known
    assert (findings, public_secrets.find_texts(others, known)) == ([], ())


def defaults(
    site: OperatorStage, charts: cache.Charts, source: str, release: str
) -> frozenset[str]:
    """Return the secrets of a chart's default values, and of what they render to."""
    name = "etcd" if release == "etcd" else release.removeprefix("openstack-")
    chart = charts.get(source, helm_model.Pin(name, chart_set.VERSION))
    values = yaml.safe_load(helm.run(site.where, ("show", "values", chart.path)))
    try:
        text = helm.run(site.where, ("template", release, chart.path))
    except errors.LabError:
        text = ""  # the defaults of the lab's charts do not render
    rendered = [document for document in yaml.safe_load_all(text) if document]
    texts = {value for _, value in public_secrets.secrets(rendered)}
    return public_secrets.of_values(values) | texts


def test_each_field_has_one_owner(site: OperatorStage) -> None:
    """Of the objects that the controller writes; its own are applied."""
    objects = [
        site.get(deployment.DEPLOYMENTS, deployment.NAME) or {},
        site.get(deployment.STATUSES, deployment.NAME) or {},
        *site.items(deployment.BUNDLES),
    ]
    print(f"{'object':32} fields by manager")
    for item in objects:
        fields: dict[str, set[str]] = {}
        for entry in item["metadata"]["managedFields"]:
            manager = f"{entry['manager']}/{entry['operation']}"
            fields.setdefault(manager, set()).update(field_paths(entry["fieldsV1"]))
        counts = {manager: len(paths) for manager, paths in fields.items()}
        print(f"{item['metadata']['name']:32} {counts}")
        owned = [path for paths in fields.values() for path in paths]
        twice = {path for path in owned if owned.count(path) > 1}
        assert twice == set()
        own = fields["osdpl-controller/Apply"]
        assert {path for path in owned if path.startswith("/f:status/")} <= own


def field_paths(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths of single fields; a path of an object itself is left out."""
    for key, below in fields.items():
        if below:
            yield from field_paths(below, f"{above}/{key}")
        elif key != ".":
            yield f"{above}/{key}"


def test_an_install_needs_few_writes_and_no_other_permission(
    site: OperatorStage,
) -> None:
    rows = site.requests()
    counts = collections.Counter(
        (row.verb, row.resource, row.subresource)
        for row in rows
        if row.resource in ("helmbundles", "openstackdeploymentstatus")
        or row.resource == "openstackdeployments"
    )
    for key, count in sorted(counts.items()):
        print(f"{count:4} {' '.join(key)}")
    times = [
        datetime.datetime.fromisoformat(row.received)
        for row in rows
        if row.resource == "helmbundles"
    ]
    elapsed_s = (max(times) - min(times)).total_seconds()
    bundles = len(set(RELEASES.values()))
    progress = bundles * elapsed_s / bundle_status.PROGRESS_S
    # The digest of each chart, once it is read.
    assert counts["patch", "helmbundles", ""] <= len(RELEASES)
    # The first one of each HelmBundle, the readiness of each release, and progress.
    most = bundles + len(RELEASES) + progress
    assert counts["patch", "helmbundles", "status"] <= most
    assert [row for row in rows if row.code == 403] == []


def test_the_status_says_the_same_as_the_cluster(site: OperatorStage) -> None:
    status = site.get(deployment.STATUSES, deployment.NAME)
    assert status is not None
    services = status["status"]["services"]
    assert {name: row["state"] for name, row in services.items()} == dict.fromkeys(
        RELEASES.values(), "APPLIED"
    )
    for bundle in site.items(deployment.BUNDLES):
        assert "values" not in json.dumps(bundle["spec"])
    assert site.condition("Accepted")["status"] == "True"
    assert site.condition("Applied")["status"] == "True"


def test_no_secret_is_in_a_log_event_or_status(site: OperatorStage) -> None:
    passwords = {
        text
        for name, content in site.secrets().items()
        if name.startswith("generated-") or name == "openstack-admin-users"
        for value in content.values()
        for text in leaves(value)
        if len(text) >= 16
    }
    assert len(passwords) > 20
    public = [
        site.log(),
        *(json.dumps(item) for item in site.items(deployment.BUNDLES)),
        *(json.dumps(item) for item in site.items(deployment.STATUSES)),
        *(json.dumps(item) for item in site.items(deployment.DEPLOYMENTS)),
    ]
    for text in public:
        assert not [password for password in passwords if password in text]


def leaves(text: str) -> Iterator[str]:
    """Return the texts of a Secret's value, which may be JSON."""
    try:
        document = json.loads(text)
    except ValueError:
        document = text
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, str):
            yield value


def asked_meanwhile(site: OperatorStage) -> list[audit.Row]:
    """Return the requests of some seconds, without those that renew a watch."""
    before = len(site.requests())
    time.sleep(QUIET_S)
    return [row for row in site.requests()[before:] if row.verb != "watch"]


def test_without_changes_nothing_is_requested(site: OperatorStage) -> None:
    site.wait("it asks for nothing", lambda: not asked_meanwhile(site))
    resident = site.process().memory_info().rss
    print(f"RSS {resident / 1024 / 1024:.0f} MiB")
    assert resident < RSS_MAX


def test_a_restart_runs_no_helm_and_writes_nothing(site: OperatorStage) -> None:
    revisions = site.revisions()
    site.stop()
    before = len(site.requests())
    site.start()
    time.sleep(QUIET_S)
    asked = site.requests()[before:]
    writes = [row for row in asked if row.verb in ("create", "update", "patch")]
    reviews = ("tokenreviews", "subjectaccessreviews")
    # The check that privileged pods are allowed is a dry run.
    assert [row for row in writes if row.resource not in (*reviews, "pods")] == []
    listed = [row.resource for row in asked if row.verb == "list"]
    assert sorted(listed) == sorted(set(listed))
    assert site.revisions() == revisions
    assert site.observe().is_complete


def run_plan(site: OperatorStage, *words: str) -> testing_click.Result:
    """Run `mooring plan osdpl` as its user does."""
    kubeconfig = str(control_plane.admin_kubeconfig(site.where))
    helm_path = str(programs.path(site.where, "helm"))
    reach = ("--kubeconfig", kubeconfig, "--helm", helm_path)
    return testing_click.CliRunner().invoke(plan_osdpl.osdpl, [*words, *reach])


def test_the_plan_names_what_would_change(site: OperatorStage, source: str) -> None:
    """As the tool's user runs it, with a file in the place of the object."""
    changed = deployment.manifest(source)
    values = {"pod": {"replicas": {"api": 2}}}
    changed["spec"]["services"] = {"identity": {"keystone": {"values": values}}}
    changed["spec"]["migration"] = {"ingress": {"state": "absent"}}
    file = site.where.state / "changed.yaml"
    file.write_text(yaml.safe_dump(changed))
    before = len(site.requests())
    plans = [
        run_plan(site, *words)
        for words in (["--output=json"], [str(file), "--output=json"], [str(file)])
    ]
    assert [plan.exit_code for plan in plans] == [0, 0, 0], plans[0].output
    as_is, as_changed = (json.loads(plan.output) for plan in plans[:2])
    assert as_is["ignored"] == []
    skipped = dict.fromkeys(RELEASES, ("InSync", "skip"))
    assert rows_of(as_is) == skipped
    upgraded = {"openstack-keystone": ("Pending", "upgrade")}
    assert rows_of(as_changed) == skipped | upgraded
    (difference,) = (row["diff"] for row in as_changed["releases"] if row["diff"])
    assert {"-  replicas: 3", "+  replicas: 2"} <= set(difference)
    (ignored,) = as_changed["ignored"]
    assert ignored.startswith("spec.migration: ")
    table = plans[2].output
    print(table)
    assert f"Fields without effect:\n  {ignored}" in table
    assert len(site.requests()) == before, "the controller noticed nothing"


def test_manual_changes_are_shown_and_not_reverted(site: OperatorStage) -> None:
    """A scaled Deployment, a changed Secret and a deleted ConfigMap.

    The next run of helm for the release overwrites them, which a later test requires.
    """
    revisions, space = site.revisions(), deployment.NAMESPACE
    kind = next(kind_ for kind_ in view.WORKLOADS if kind_.kind == "Deployment")
    scaled = {"spec": {"replicas": 2}}
    site.api.patch(
        kind, "glance-api", json.dumps(scaled).encode(), space, timeout_s=PATIENCE_S
    )
    owned = [
        item["metadata"]["name"]
        for item in site.items(resources.CONFIG_MAPS)
        if (item["metadata"].get("annotations") or {}).get(OWNER) == "openstack-glance"
    ]
    secret = next(
        item["metadata"]["name"]
        for item in site.items(resources.SECRETS)
        if (item["metadata"].get("annotations") or {}).get(OWNER) == "openstack-glance"
        and item.get("data")
    )
    content = site.get(resources.SECRETS, secret) or {}
    key = next(iter(content["data"]))
    value = "c2VjcmV0LW9mLXRoZS10ZXN0"
    changed = {"data": {key: value}}
    site.api.patch(
        resources.SECRETS,
        secret,
        json.dumps(changed).encode(),
        space,
        timeout_s=PATIENCE_S,
    )
    if owned:
        site.delete(resources.CONFIG_MAPS, owned[0])
    plan = run_plan(site, "--live", "--output=json")
    assert plan.exit_code == 0, plan.output
    live = json.loads(plan.output)["manual_changes"]
    for row in live:
        print(row)
    changes = {(row["kind"], row["name"]): row["change"] for row in live}
    expected = {
        ("Deployment", "glance-api"): "changed: spec.replicas",
        ("Secret", secret): f"changed: data.{key}",
        **({("ConfigMap", owned[0]): "deleted"} if owned else {}),
    }
    assert changes == expected
    assert value not in plan.output
    assert site.revisions() == revisions


def rows_of(plan: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["release"]: (row["state"], row["action"]) for row in plan["releases"]}


def test_one_changed_value_is_one_run_of_helm(site: OperatorStage) -> None:
    before = site.revisions()
    replicas = {"pod": {"replicas": {"api": 2}}}
    site.patch({"services": {"identity": {"keystone": {"values": replicas}}}})
    site.wait(
        "keystone has 2 replicas",
        lambda: workloads(site)["keystone-api"]["replicas"] == 2,
    )
    site.wait_complete()
    assert site.revisions() == {**before, "openstack-keystone": 2}


def test_a_killed_controller_is_completed_by_its_successor(site: OperatorStage) -> None:
    """Of three upgrades; that of glance also overwrites the manual changes."""
    before = site.revisions()
    charts = {"identity": "keystone", "image": "glance", "placement": "placement"}
    values = {"values": {"pod": {"replicas": {"api": 1}}}}
    site.patch({"services": {key: {charts[key]: values} for key in charts}})
    changed = site.wait(
        "some release is upgraded",
        lambda: {
            name for name, number in site.revisions().items() if number > before[name]
        },
    )
    site.kill()
    print(f"killed after {len(changed)} upgrades had begun")
    site.start()
    names = {f"{chart}-api" for chart in charts.values()}
    site.wait(
        f"{names} have 1 replica",
        lambda: {workloads(site)[name]["replicas"] for name in names} == {1},
    )
    site.wait_complete()
    states = {row.release: row.state for row in site.observe().rows}
    assert states == dict.fromkeys(RELEASES, "deployed")
    upgraded = {
        name for name, number in site.revisions().items() if number > before[name]
    }
    assert upgraded == {f"openstack-{chart}" for chart in charts.values()}
    configs = {item["metadata"]["name"] for item in site.items(resources.CONFIG_MAPS)}
    assert "glance-bin" in configs


def is_accepted(site: OperatorStage, document: Mapping[str, Any]) -> bool:
    """Apply an OpenStackDeployment; return False while the webhook rejects it."""
    try:
        site.apply(document)
    except kube_errors.Invalid:
        return False
    return True


def test_a_second_deployment_is_refused_and_nothing_else_happens(
    site: OperatorStage, source: str
) -> None:
    """Also when the webhook, which refuses it, is not asked."""
    before = site.revisions()
    with pytest.raises(kube_errors.KubeError, match="one OpenStackDeployment"):
        site.apply(deployment.manifest(source, "second"))
    controller.remove_webhook(site.api)
    second = deployment.manifest(source, "second")
    site.wait(
        "the API server does not ask the webhook any more",
        lambda: is_accepted(site, second),
    )
    condition = site.wait(
        "the second has a condition",
        lambda: site.condition("Accepted", "second"),
    )
    assert condition["status"] == "False"
    assert condition["reason"] == "SecondDeployment"
    assert deployment.NAME in condition["message"]
    site.delete(deployment.DEPLOYMENTS, "second")
    site.wait(
        "the second is deleted",
        lambda: site.get(deployment.DEPLOYMENTS, "second") is None,
    )
    assert site.revisions() == before
    assert site.observe().is_complete


def names(site: OperatorStage, kind: resources.Resource) -> set[str]:
    return {item["metadata"]["name"] for item in site.items(kind)}


def test_a_deletion_leaves_data_and_credentials_only(site: OperatorStage) -> None:
    jobs, claims = names(site, resources.JOBS), names(site, resources.CLAIMS)
    generated = {name for name in site.secrets() if name.startswith("generated-")}
    print(f"{len(jobs)} Jobs, {len(claims)} claims, {len(generated)} Secrets")
    assert min(len(jobs), len(claims), len(generated)) > 0
    site.delete(deployment.DEPLOYMENTS, deployment.NAME)
    site.wait(
        "the OpenStackDeployment is deleted",
        lambda: site.get(deployment.DEPLOYMENTS, deployment.NAME) is None,
    )
    assert site.revisions() == {}
    assert names(site, deployment.BUNDLES) == set()
    assert names(site, resources.JOBS) == set()
    assert names(site, resources.CLAIMS) == claims
    assert generated <= site.secrets().keys()


@pytest.mark.parametrize("kind", ["oci", "folder"])
def test_charts_of_the_other_sources_are_installed(
    kind: str, site: OperatorStage, where: places.Places
) -> None:
    """What was there before is deleted first, with all its releases."""
    if site.get(deployment.DEPLOYMENTS, deployment.NAME) is not None:
        site.forget()
    assert site.revisions() == {}
    serve = {"oci": chart_sources.serve_registry, "folder": chart_sources.write_folder}
    address = serve[kind](where)
    site.apply(deployment.manifest(address))
    site.wait_deployed({"openstack-memcached", "etcd"})
    bundle = site.get(deployment.BUNDLES, "openstack-memcached") or {}
    assert bundle["spec"]["repositories"] == [
        {"name": deployment.REPOSITORY, "url": address}
    ]


_GRANTED_ON = "a Role or ClusterRole of the charts grants it: nobody grants more"
UNUSED: Mapping[tuple[str, str, str], str] = {
    **{
        (group, resource, ""): _GRANTED_ON
        for group in ("", "extensions", "batch", "apps", "discovery.k8s.io")
        for resource in (
            *("services", "endpoints", "endpointslices"),
            *("pods", "secrets", "jobs", "daemonsets"),
        )
        # Of these each granted verb is used.
        if (group, resource)
        not in (("", "secrets"), ("batch", "jobs"), ("apps", "daemonsets"))
    },
    ("", "nodes", ""): _GRANTED_ON,
    ("", "pods", "log"): "helm explains a failed hook Job",
    ("", "persistentvolumeclaims", ""): "charts with a claim, and mooring.io/purge",
    ("networking.k8s.io", "ingresses", ""): "values that switch them on",
    ("networking.k8s.io", "networkpolicies", ""): "values that switch them on",
    ("", "events", ""): "patch: an Event that is repeated",
    ("lcm.mirantis.com", "openstackdeployments", "finalizers"): (
        "API servers with OwnerReferencesPermissionEnforcement"
    ),
}
"""Kinds of which not each granted verb is used here, with the reason."""


def test_each_granted_permission_is_used(site: OperatorStage) -> None:
    """Verbs used, by the audit log, equal verbs granted, by the chart."""
    token = control_plane_token(site)
    status, _ = controller.ask(site.where.port(controller.NAME), "/metrics", token)
    assert status == 403
    granted = {
        (right.verb, right.group, right.resource, right.subresource)
        for right in rights.parse(rights.manifest(controller.NAME))
    }
    rows = audit.rows(site.where, controller.ACCOUNT)
    used = collections.Counter(
        (verb, row.group, row.resource, row.subresource)
        for row in rows
        for verb in verbs_of(row)
        if row.resource and row.code != 403
    )
    print(f"{len(granted)} granted, {len(used)} used, {sum(used.values())} requests")
    for key in sorted(granted | set(used)):
        why = "" if used[key] else UNUSED.get(key[1:], "NO REASON")
        print(f"{used[key]:5} {' '.join(key):60} {why}")
    assert set(used) - granted == set()
    unused = {key[1:] for key in granted - set(used)}
    assert unused - set(UNUSED) == set()
    if CHECKOUT in os.environ:
        return  # other charts use more
    # A reason that is not needed any more is removed.
    kinds = {key[1:] for key in granted}
    assert {key for key in UNUSED if key in kinds} - unused == set()


def verbs_of(row: audit.Row) -> tuple[str, ...]:
    """Return the verbs that were needed: what an apply creates needs create, too."""
    return (
        ("patch", "create") if (row.verb, row.code) == ("patch", 201) else (row.verb,)
    )


def control_plane_token(site: OperatorStage) -> str:
    """Return the token of the controller's own ServiceAccount."""
    text = controller.kubeconfig(site.where).read_text()
    (user,) = yaml.safe_load(text)["users"]
    return str(user["user"]["token"])
