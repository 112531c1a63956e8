"""The outputs of a layout are rendered and applied, and the daemons run with them."""

import base64
import contextlib
import datetime
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, discoverer
from lib.lab.kube import cluster as kube_cluster
from lib.lab.kube import control_plane, simulated_kubelet
from lib.lab.openstack import tenant
from lib.lab.run import processes, waiting
from tests.harness.daemons import tool
from tests.harness.layouts import inputs, roots
from tests.harness.services import services

MASTERS = (roots.master(0), roots.master(1))
NAMES = ("prod-master-0", "prod-master-1")
NAMESPACES = ("d8-cloud-provider-openstack", "d8-cloud-instance-manager")
INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"
VARIABLES = {
    "authURL": "OS_AUTH_URL",
    "domainName": "OS_DOMAIN_NAME",
    "username": "OS_USERNAME",
    "password": "OS_PASSWORD",
    "region": "OS_REGION",
    "tenantName": "OS_TENANT_NAME",
    "moduleConfig": "MODULE_CONFIG",
}
"""Of the discoverer, by the key of its Secret.

Source: charts/cloud-data-discoverer/templates/deployment.yaml.
"""


def _rendered(
    mine: roots.LayoutCluster, data: Mapping[str, object]
) -> list[Mapping[str, Any]]:
    """Return the Secrets that `mooring render openstack` prints for the outputs."""
    configuration, outputs = mine.room / "cluster.yaml", mine.room / "data.yaml"
    cluster = {"kind": "ClusterConfiguration", **inputs.cluster(mine.prefix)}
    configuration.write_text(yaml.safe_dump_all([mine.document, cluster]))
    outputs.write_text(yaml.safe_dump(data))
    result = tool.mooring(
        "render",
        "openstack",
        f"--cluster-configuration={configuration}",
        f"--discovery-data={outputs}",
        f"--cluster-uuid={mine.uuid}",
        "--only=secrets",
    )
    assert result.returncode == 0, result.stderr
    return list(yaml.safe_load_all(result.stdout))


def _apply(where: places.Places, secrets: list[Mapping[str, Any]]) -> None:
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in NAMESPACES
    ]
    control_plane.apply_manifests(where, yaml.safe_dump_all([*namespaces, *secrets]))


def _secret(api: client.Api, namespace: str, name: str) -> Mapping[str, str]:
    """Return the content of a Secret of the cluster."""
    read = json.loads(api.read(resources.SECRETS, name, namespace, timeout_s=10))
    return {key: base64.b64decode(text).decode() for key, text in read["data"].items()}


@contextlib.contextmanager
def _nodes(api: client.Api, user: tenant.Tenant) -> Iterator[None]:
    """Be the kubelets of the masters; their Nodes are removed at the end."""
    stop = threading.Event()
    thread = threading.Thread(
        target=simulated_kubelet.run,
        args=(
            api,
            user,
            NAMES,
            lambda: datetime.datetime.now(datetime.UTC),
            lambda: not stop.wait(1.5),
            print,
        ),
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        for name in NAMES:
            with contextlib.suppress(kube_errors.NotFound):
                api.delete(resources.NODES, name, timeout_s=10)


@contextlib.contextmanager
def _manager(where: places.Places, api: client.Api) -> Iterator[None]:
    """Run openstack-ccm with the Secret's cloud.conf."""
    control_plane.apply_manifests(where, ccm.manifest())
    kubeconfig = where.state / "ccm-account"
    admin = control_plane.admin_kubeconfig(where)
    kube_cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, kubeconfig)
    conf = where.state / "handover-cloud.conf"
    secret = _secret(api, NAMESPACES[0], "cloud-controller-manager")
    conf.write_text(secret["cloud-config"])
    words = ccm.arguments(where, kubeconfig, conf, ccm.LAB)
    ccm.start(where, pexes.beside("openstack-ccm"), words)
    try:
        yield
    finally:
        processes.stop(where, [ccm.NAME])


@contextlib.contextmanager
def _discoverer(where: places.Places, api: client.Api) -> Iterator[None]:
    """Run cloud-data-discoverer with the variables that its Secret sets."""
    crd = discoverer.chart("crds/instancetypescatalogs.yaml")
    rights = discoverer.permissions(manages_classes=False, reader=False)
    control_plane.apply_manifests(where, f"{rights}\n---\n{crd}")
    secret = _secret(api, NAMESPACES[0], "cloud-data-discoverer")
    env = {VARIABLES[key]: text for key, text in secret.items()}
    env["CLUSTER_UUID"] = inputs.UUID
    pex = pexes.beside("cloud-data-discoverer")
    with discoverer.running(where, pex, "handover-discoverer", env):
        yield


def _addresses(api: client.Api, name: str) -> dict[str, str] | None:
    """Return a Node's addresses by type; None: it is not initialised yet."""
    try:
        node = json.loads(api.read(resources.NODES, name, timeout_s=10))
    except kube_errors.NotFound:
        return None
    taints = {taint["key"] for taint in node["spec"].get("taints", [])}
    if simulated_kubelet.TAINT in taints:
        return None
    return {each["type"]: each["address"] for each in node["status"]["addresses"]}


def _published(api: client.Api) -> Mapping[str, Any] | None:
    """Return what the discoverer has published; None: nothing yet."""
    name, key = discoverer.DATA
    try:
        document: Mapping[str, Any] = json.loads(
            _secret(api, discoverer.NAMESPACE, name)[key]
        )
    except kube_errors.NotFound:
        return None
    return document


@pytest.fixture()
def ends() -> Iterator[contextlib.ExitStack]:
    """Return a stack whose callbacks run at the end of a test."""
    with contextlib.ExitStack() as stack:
        yield stack


def test_the_daemons_run_with_the_outputs_of_a_layout(
    where: places.Places,
    api: client.Api,
    cluster: roots.MakeCluster,
    ends: contextlib.ExitStack,
) -> None:
    mine, user = cluster("Standard", masters={"replicas": 2})
    data = mine.apply(roots.BASE)["cloud_discovery_data"]
    outputs = [mine.apply(root) for root in MASTERS]
    ends.callback(mine.destroy, roots.BASE, *MASTERS)
    _apply(where, _rendered(mine, data))
    ends.enter_context(_manager(where, api))
    ends.enter_context(_nodes(api, user))
    ends.enter_context(_discoverer(where, api))
    users = services.Services(api, "handover")
    # While openstack-ccm runs, which deletes the load balancer.
    ends.callback(users.clear)

    users.make("web", {INTERNAL: "true"})

    waiting.until("data are published", lambda: _published(api))
    waiting.until(
        "masters are initialised",
        lambda: all(_addresses(api, name) for name in NAMES),
    )
    waiting.until("the Service has an address", lambda: _ingress(users.get("web")))
    nodes = [_addresses(api, name) or {} for name in NAMES]
    published = _published(api) or {}
    assert [node["InternalIP"] for node in nodes] == [
        each["node_internal_ip_address"] for each in outputs
    ]
    assert [node["ExternalIP"] for node in nodes] == [
        each["master_ip_address_for_ssh"] for each in outputs
    ]
    (balancer,) = user.connection.load_balancer.load_balancers()
    assert balancer.vip_subnet_id == data["loadBalancer"]["subnetID"]
    assert balancer.vip_address == _ingress(users.get("web"))
    assert published["mainNetwork"] == data["instances"]["mainNetwork"]
    assert published["zones"] == data["zones"]


def _ingress(service: Mapping[str, Any] | None) -> str:
    """Return the address of a Service; empty: it has none."""
    status = (service or {}).get("status", {})
    entries = status.get("loadBalancer", {}).get("ingress") or [{}]
    return str(entries[0].get("ip", ""))
