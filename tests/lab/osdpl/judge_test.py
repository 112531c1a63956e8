"""The releases of one cloud fit together: rendered by helm and judged as a whole.

With the lab's own charts, and with those of a checkout of openstack-helm if
MOORING_OPENSTACK_HELM names one. Each rule of the judge is proven by planted faults.
"""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.osdpl import cloud_manifests, judge
from tests.harness.osdpl.cloud_manifests import CloudManifests
from tests.harness.osdpl.rendering import VERSION, Rendered

Manifest = dict[str, Any]
Manifests = dict[str, list[Manifest]]
Values = dict[str, Manifest]

CHART_FAULTS = {
    "key: openstack-mariadb StatefulSet/mariadb-server:"
    " ConfigMap/mariadb-bin has no key stop.sh",
    "key: openstack-placement Deployment/placement-api:"
    " Secret/placement-etc has no key wsgi-placement.conf",
}
"""What charts of openstack-helm have wrong for any values: each mounts a file that it
does not make, and its program does not need."""


def judged(rendered: Rendered, cloud: CloudManifests) -> set[str]:
    """Return the findings about a cloud, without those of the charts alone."""
    findings = judge.judge(cloud, VERSION, rendered.images, rendered.public)
    return {str(finding) for finding in findings} - CHART_FAULTS


def test_all_releases_fit_together(rendered: Rendered) -> None:
    cloud = rendered.cloud
    print(f"{len(cloud.objects)} objects, {len(cloud.pods)} with pods")
    print(f"{len(cloud.texts)} texts, {len(rendered.public)} public secrets")
    assert {"password", "openstack-cookie"} <= rendered.public
    assert judged(rendered, cloud) == set()


def entry(manifests: Manifests, release: str, kind: str, name: str) -> Manifest:
    """Return an object of a release."""
    for manifest in manifests[release]:
        if manifest["kind"] == kind and manifest["metadata"]["name"] == name:
            return manifest
    raise AssertionError(f"{release} has no {kind}/{name}")


def remove(manifests: Manifests, release: str, kind: str, name: str) -> None:
    """Remove an object of a release."""
    manifests[release].remove(entry(manifests, release, kind, name))


def pod(manifests: Manifests, release: str, kind: str, name: str) -> Manifest:
    """Return the spec of the pods of an object."""
    spec: Manifest = entry(manifests, release, kind, name)["spec"]["template"]["spec"]
    return spec


def replace_text(manifests: Manifests, release: str, old: str, new: str) -> None:
    """Replace a text in the Secrets of a release."""
    count = 0
    for manifest in manifests[release]:
        if manifest["kind"] == "Secret":
            texts = cloud_manifests.texts(cloud_manifests.Object(release, manifest))
            count += sum(text.count(old) for text in texts.values())
            changed = {key: text.replace(old, new) for key, text in texts.items()}
            manifest.pop("stringData", None)
            manifest["data"] = {
                key: base64.b64encode(text.encode()).decode()
                for key, text in changed.items()
            }
    assert count, f"{release} has no {old}"


def plant_account(manifests: Manifests, values: Values) -> None:
    """Change the password of one account in one release."""
    auth = values["openstack-nova"]["endpoints"]["oslo_messaging"]["auth"]
    auth["admin"]["password"] = "another"


def plant_label(manifests: Manifests, values: Values) -> None:
    """Move the agents of the hypervisors to nodes without Open vSwitch."""
    spec = pod(manifests, "openstack-neutron", "Deployment", "neutron-server")
    spec["nodeSelector"] = {"openstack-network-node": "enabled"}


def plant_same_node(manifests: Manifests, values: Values) -> None:
    """Move libvirt to the gateways, so that nova-compute waits for ever."""
    for manifest in manifests["openstack-libvirt"]:
        if manifest["kind"] == "DaemonSet":
            spec = manifest["spec"]["template"]["spec"]
            spec["nodeSelector"] = {"openstack-gateway": "enabled"}


def plant_claim(manifests: Manifests, values: Values) -> None:
    """Add a claim that no release makes."""
    spec = pod(manifests, "openstack-glance", "Deployment", "glance-api")
    claim = {"name": "more", "persistentVolumeClaim": {"claimName": "nosuch"}}
    spec["volumes"] = [*(spec.get("volumes") or []), claim]


def plant_job(manifests: Manifests, values: Values) -> None:
    """Remove the Job for which others wait, which makes the virtual host, too."""
    remove(manifests, "openstack-nova", "Job", "nova-rabbit-init")


def image_of(image: str) -> Callable[[Manifests, Values], None]:
    """Return a planted image of the scheduler."""

    def plant(manifests: Manifests, values: Values) -> None:
        spec = pod(manifests, "openstack-nova", "Deployment", "nova-scheduler")
        spec["containers"][0]["image"] = image

    return plant


def text_in(release: str, old: str, new: str) -> Callable[[Manifests, Values], None]:
    """Return a planted text in the Secrets of a release."""

    def plant(manifests: Manifests, values: Values) -> None:
        replace_text(manifests, release, old, new)

    return plant


def without(release: str, kind: str, name: str) -> Callable[[Manifests, Values], None]:
    """Return the planted lack of an object."""

    def plant(manifests: Manifests, values: Values) -> None:
        remove(manifests, release, kind, name)

    return plant


def plant_headless(manifests: Manifests, values: Values) -> None:
    """Add an address to the Service of the bus, so its pods lose their names."""
    service = entry(manifests, "openstack-rabbitmq", "Service", "rabbitmq")
    service["spec"].pop("clusterIP")


def plant_replicas(manifests: Manifests, values: Values) -> None:
    """Remove a server of the cache that programs are configured with."""
    sets = [x for x in manifests["openstack-memcached"] if x["kind"] == "StatefulSet"]
    sets[0]["spec"]["replicas"] = 1


def plant_selector(manifests: Manifests, values: Values) -> None:
    """Change a Service so that it selects no pods."""
    service = entry(manifests, "openstack-keystone", "Service", "keystone-api")
    service["spec"]["selector"] = {"app": "ingress-api"}


def plant_variable(manifests: Manifests, values: Values) -> None:
    """Set a variable to a password that everybody knows."""
    spec = pod(manifests, "openstack-nova", "Deployment", "nova-scheduler")
    spec["containers"][0]["env"] = [{"name": "ADMIN_PASSWORD", "value": "password"}]


def plant_host(manifests: Manifests, values: Values) -> None:
    """Change the virtual host of one program to another than that of the Job."""
    secret = entry(manifests, "openstack-neutron", "Secret", "neutron-etc")
    texts = cloud_manifests.texts(cloud_manifests.Object("openstack-neutron", secret))
    text = texts["neutron.conf"].replace(":5672/neutron", ":5672/openstack")
    secret.setdefault("data", {})["neutron.conf"] = base64.b64encode(text.encode())
    secret["data"]["neutron.conf"] = secret["data"]["neutron.conf"].decode()
    (secret.get("stringData") or {}).pop("neutron.conf", None)


KEYSTONE = "keystone-api.openstack.svc.cluster.local:5000"
PLANTS: dict[str, tuple[Callable[[Manifests, Values], None], str]] = {
    "a Secret is missing": (
        without("openstack-nova", "Secret", "nova-etc"),
        "reference",
    ),
    "an account of Kubernetes is missing": (
        without("openstack-glance", "ServiceAccount", "glance-api"),
        "reference",
    ),
    "a claim is missing": (plant_claim, "reference"),
    "an image is of an older OpenStack": (
        image_of("quay.io/airshipit/nova:2025.1-ubuntu_noble"),
        "image",
    ),
    "an image is of a very old OpenStack": (
        image_of("docker.io/openstackhelm/nova:stein-18.04-opensuse_15"),
        "image",
    ),
    "an image is not of the chart": (image_of("docker.io/rabbitmq:4.3.5"), "image"),
    "a password differs": (plant_account, "account"),
    "an address names another virtual host": (plant_host, "maker"),
    "a virtual host is made by no Job": (plant_job, "maker"),
    "a database is made by no Job": (
        without("openstack-placement", "Job", "placement-db-init"),
        "maker",
    ),
    "an account of Identity is made by no Job": (
        without("openstack-placement", "Job", "placement-ks-user"),
        "maker",
    ),
    "an endpoint has another port": (
        text_in("openstack-nova", KEYSTONE, KEYSTONE.replace("5000", "35357")),
        "endpoint",
    ),
    "an endpoint is no Service": (
        text_in("openstack-nova", KEYSTONE, KEYSTONE.replace("api", "admin")),
        "endpoint",
    ),
    "a Service selects no pods": (plant_selector, "endpoint"),
    "the servers of the bus have no names": (plant_headless, "endpoint"),
    "a server of the cache does not exist": (plant_replicas, "endpoint"),
    "a Job waits for no Job": (plant_job, "awaited"),
    "a pod waits for no Service": (
        without("openstack-keystone", "Service", "keystone-api"),
        "awaited",
    ),
    "a pod waits for one that is on other nodes": (plant_same_node, "awaited"),
    "no node has the label": (plant_label, "node labels"),
    "a secret is public": (
        text_in(
            "openstack-rabbitmq",
            "placeholder-generated-osdpl-controller-secrets-rabbitmq_erlang_cookie",
            "openstack-cookie",
        ),
        "default credential",
    ),
    "a variable is public": (plant_variable, "default credential"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_fault_is_reported(rendered: Rendered, name: str) -> None:
    plant, rule = PLANTS[name]
    manifests = copy.deepcopy(dict(rendered.manifests))
    values = copy.deepcopy(dict(rendered.values))
    plant(manifests, values)
    findings = judged(rendered, cloud_manifests.of_releases(manifests, values))
    print(*sorted(findings)[:5], sep="\n")
    assert rule in {finding.partition(":")[0] for finding in findings}
