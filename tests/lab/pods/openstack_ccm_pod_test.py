"""openstack-ccm in a pod: image, chart, helm, kubelet and containerd are the real ones.

The node is a server of the lab's OpenStack, and this machine has its address. The pod
initializes the Node of its own host, and serves Services.
"""

import base64
import dataclasses
import http.client
import json
import pathlib
import secrets
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.images import images
from lib.lab.kube import cluster, control_plane, kube_objects, kubelet
from lib.lab.openstack import accounts, tenant
from lib.lab.slots import leases
from tests.harness import testing as shared
from tests.harness import waiting
from tests.harness.images import building
from tests.harness.openstack import balancers, testing

GROUPS = (kubelet.GROUP, control_plane.SCHEDULER_GROUP, helm.GROUP)
NAME = "openstack-ccm"
USER = 64535
PORT = 10471
SECRET = "cloud-config"  # - a name
KEY = "cloud.conf"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"
MIB = 2**20
REQUEST_MIB = 100
"""Of charts/openstack-ccm."""


@dataclasses.dataclass(frozen=True, slots=True)
class PodHost:
    """A node with the chart. system, default: objects of these namespaces."""

    where: places.Places
    name: str
    address: str
    conf: str
    system: kube_objects.Objects
    default: kube_objects.Objects

    def pod(self) -> dict[str, Any]:
        """Return the newest pod of the chart that is not being deleted, or {}."""
        pods = [
            pod
            for pod in self.system.all(resources.PODS)
            if pod["metadata"].get("labels", {}).get("app") == NAME
            and "deletionTimestamp" not in pod["metadata"]
        ]
        return max(
            pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default={}
        )

    def is_ready(self) -> bool:
        """Report whether the pod is Ready."""
        conditions = self.pod().get("status", {}).get("conditions", ())
        return any(x["type"] == "Ready" and x["status"] == "True" for x in conditions)

    def container(self) -> dict[str, Any]:
        """Return the status of its container."""
        (status,) = self.pod()["status"]["containerStatuses"]
        return dict(status)

    def process(self) -> psutil.Process:
        """Return the process of the container, the one below its shim."""
        uid = self.pod()["metadata"]["uid"]
        for process in psutil.process_iter(["cmdline", "uids"]):
            words = process.info["cmdline"] or []
            if f"/usr/local/bin/{NAME}" in words and uid in cgroup(process):
                return process
        raise AssertionError("no process of the container")

    def log(self) -> str:
        """Return what its containers have written."""
        folder = self.where.state / "node/pod-logs"
        files = sorted(folder.glob(f"kube-system_{NAME}-*/{NAME}/*.log"))
        return "".join(file.read_text() for file in files)


def cgroup(process: psutil.Process) -> str:
    """Return the cgroups of a process as the kernel lists them."""
    try:
        return pathlib.Path(f"/proc/{process.pid}/cgroup").read_text()
    except OSError:
        return ""


@pytest.fixture(scope="module")
def host(
    lease: leases.Lease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PodHost]:
    """Run cluster and cloud, and install the chart on a node that is a server."""
    if reason := kubelet.unavailable(lease.where):
        pytest.skip(reason)
    shown = shared.shown()
    folder = tmp_path_factory.mktemp("images")
    with testing.running(lease) as where:
        programs.build(where, GROUPS, shown)
        (image,) = images.build(where, building.source(), [NAME], folder, shown)
        with testing.projects(where) as make:
            account, project = make("pods")
            try:
                yield installed(where, account, project, image)
            finally:
                kubelet.down(where)
                for server in project.items():
                    project.delete(server.id)
                waiting.until("the server is deleted", lambda: not project.items())
                balancers.clear(project.connection)


def installed(
    where: places.Places,
    account: accounts.Account,
    project: tenant.Tenant,
    image: images.Image,
) -> PodHost:
    """Boot the server, start its kubelet, and install the chart by helm."""
    name = f"node-{secrets.token_hex(2)}"
    server = project.boot_all([name])[name]
    waiting.until("the server has an address", lambda: addresses_of(project, server.id))
    address = addresses_of(project, server.id)[0]
    kubelet.up(where, shared.shown(), name, address)
    control_plane.start_scheduler(where, shared.shown())
    kubelet.load_image(where, image.file)
    admin = control_plane.admin_kubeconfig(where)
    api: client.Api = cluster.connect(admin)
    system = kube_objects.Objects(api, "kube-system")
    conf = accounts.cloud_conf(where, account)
    system.make(resources.SECRETS, SECRET, data={KEY: encoded(conf)})
    values = {
        "image": image.reference,
        "replicas": 1,
        "cloudConfig": {"secretName": SECRET, "key": KEY},
        "clusterName": name,
        "kubeApiServer": {"host": "127.0.0.1", "port": where.port("apiserver")},
        "nodeSelector": {"node-role.kubernetes.io/control-plane": None},
    }
    file = where.state / "pods.values.yaml"
    file.write_text(json.dumps(values))
    chart = pathlib.Path("charts") / NAME
    words = ("install", NAME, chart, "--namespace", "kube-system", "--values", file)
    helm.run(where, words, admin)
    return PodHost(
        where, name, address, conf, system, kube_objects.Objects(api, "default")
    )


def addresses_of(project: tenant.Tenant, server_id: str) -> tuple[str, ...]:
    """Return the addresses of a server."""
    return next(x.addresses for x in project.items() if x.id == server_id)


def encoded(text: str) -> str:
    """Return the data of a Secret."""
    return base64.b64encode(text.encode()).decode()


def until(host: PodHost, what: str, is_met: Callable[[], object]) -> None:
    """Wait, and print how long it took; with the log of the pod if it never comes."""
    try:
        seconds = waiting.until(what, is_met)
    except Exception:
        print(json.dumps(host.pod().get("status"), indent=1), host.log()[-4000:])
        raise
    print(f"{what}: {seconds:.1f} s")


def test_it_initializes_the_node_of_its_own_host(host: PodHost) -> None:
    """The taint that only it removes does not keep its own pod away."""
    until(host, "the pod is ready", host.is_ready)
    status = host.pod()["status"]
    print(status["startTime"], host.container()["state"])

    def is_initialized() -> bool:
        node = host.default.get(resources.NODES, host.name) or {}
        taints = [x["key"] for x in node.get("spec", {}).get("taints", ())]
        return UNINITIALIZED not in taints and bool(node["spec"].get("providerID"))

    until(host, "the Node is initialized", is_initialized)
    node = host.default.get(resources.NODES, host.name)
    assert node is not None
    internal = [x for x in node["status"]["addresses"] if x["type"] == "InternalIP"]
    assert [x["address"] for x in internal] == [host.address]
    assert status["hostIP"] == host.address


def test_a_service_gets_its_address(host: PodHost) -> None:
    host.default.make(
        resources.SERVICES,
        "web",
        {"annotations": {INTERNAL: "true"}},
        spec={
            "type": "LoadBalancer",
            "selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080}],
        },
    )

    def ingress() -> list[dict[str, str]]:
        service = host.default.get(resources.SERVICES, "web") or {}
        return list(service["status"].get("loadBalancer", {}).get("ingress", ()))

    until(host, "the Service has an address", ingress)
    print(ingress())
    host.default.delete(resources.SERVICES, "web")
    gone = lambda: host.default.get(resources.SERVICES, "web") is None  # noqa: E731
    until(host, "the Service and its load balancer are deleted", gone)


def test_the_pod_has_no_more_than_it_requires(host: PodHost) -> None:
    """As the kernel shows it: user, capabilities, seccomp, root file system, memory."""
    process = host.process()
    folder = pathlib.Path(f"/proc/{process.pid}")
    lines = (folder / "status").read_text().splitlines()
    status = {key: text.strip() for key, _, text in (x.partition(":") for x in lines)}
    mounts = [x.split() for x in (folder / "mounts").read_text().splitlines()]
    (root,) = (x for x in mounts if x[1] == "/")
    rows = {
        "user": set(status["Uid"].split()),
        "group": set(status["Gid"].split()),
        "capabilities": {status[x] for x in ("CapEff", "CapPrm", "CapBnd", "CapAmb")},
        "no new privileges": status["NoNewPrivs"],
        "seccomp": status["Seccomp"],
        "root": root[3].split(",")[0],
    }
    for name, value in rows.items():
        print(f"{name:20} {value}")
    assert rows == {
        "user": {str(USER)},
        "group": {str(USER)},
        "capabilities": {"0" * 16},
        "no new privileges": "1",
        "seccomp": "2",
        "root": "ro",
    }
    used = process.memory_info().rss / MIB
    print(f"memory: {used:.0f} MiB resident; the chart requests {REQUEST_MIB} MiB")
    print(f"cgroup: {cgroup_memory(process) / MIB:.0f} MiB")


def cgroup_memory(process: psutil.Process) -> int:
    """Return the bytes of memory of the cgroup of a process, of either version."""
    for line in cgroup(process).splitlines():
        _, controllers, path = line.split(":", 2)
        names = {"": "memory.current", "memory": "memory.usage_in_bytes"}
        if controllers in names:
            prefix = f"/sys/fs/cgroup/{controllers}".rstrip("/")
            file = pathlib.Path(f"{prefix}{path}/{names[controllers]}")
            if file.exists():
                return int(file.read_text())
    return 0


def test_probes_answer_on_the_address_of_the_host(host: PodHost) -> None:
    for path in ("/livez", "/readyz", "/healthz"):
        context = ssl.create_default_context()
        # It is signed by the pod itself.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            host.address, PORT, timeout=30, context=context
        )
        connection.request("GET", path)
        answer = connection.getresponse()
        print(path, answer.status)
        assert answer.status == http.HTTPStatus.OK
        connection.close()


def test_a_rotated_secret_takes_effect_without_a_restart(host: PodHost) -> None:
    before = host.container()
    text = f"{host.conf}\n# rotated\n"
    host.system.patch(resources.SECRETS, SECRET, data={KEY: encoded(text)})
    until(
        host,
        "the configuration is read again",
        lambda: "configuration reloaded" in host.log(),
    )
    after = host.container()
    assert after["containerID"] == before["containerID"]
    assert after["restartCount"] == before["restartCount"]


def test_a_process_that_hangs_is_restarted(host: PodHost) -> None:
    """The liveness probe of the chart fails; the kubelet starts a new container."""
    before = host.container()
    host.process().suspend()

    def is_restarted() -> bool:
        return bool(host.container()["restartCount"] > before["restartCount"])

    until(host, "the container is restarted", is_restarted)
    until(host, "the pod is ready again", host.is_ready)
    assert host.container()["containerID"] != before["containerID"]


def test_a_deleted_pod_is_replaced_and_leads(host: PodHost) -> None:
    """The port of the host is free again, and the Lease is released at the end."""
    old = host.pod()["metadata"]["uid"]
    host.system.delete(resources.PODS, host.pod()["metadata"]["name"], grace_s=None)

    def is_replaced() -> bool:
        pod = host.pod()
        return bool(pod) and pod["metadata"]["uid"] != old and host.is_ready()

    until(host, "another pod is ready", is_replaced)
    began = time.monotonic()
    until(host, "it leads", lambda: "became leader" in newest_log(host))
    print(f"after {time.monotonic() - began:.1f} s")


def newest_log(host: PodHost) -> str:
    """Return what the newest pod has written."""
    pod = host.pod()
    uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
    folder = host.where.state / f"node/pod-logs/kube-system_{name}_{uid}"
    files = sorted(folder.glob("*/*.log"))
    return files[-1].read_text() if files else ""
