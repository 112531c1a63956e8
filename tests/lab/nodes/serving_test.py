"""--secure-port of openstack-ccm, with a real kube-apiserver and a real cloud."""

import contextlib
import http.client
import json
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, kube_files
from lib.lab.openstack import accounts, lab, layout, tenant
from lib.lab.run import processes, tls, waiting
from lib.lab.slots import leases

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
READERS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: may-read, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: may-not, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secure-port-reader}
rules: [{nonResourceURLs: [/metrics, /metrics/slis, /configz], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: secure-port-reader}
roleRef:
  {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: secure-port-reader}
subjects: [{kind: ServiceAccount, name: may-read, namespace: default}]
"""
OPEN = ("/healthz", "/livez", "/readyz")
GUARDED = ("/metrics", "/metrics/slis", "/configz")
SILENT = (layout.KEYSTONE, layout.NOVA, layout.NEUTRON)
SILENT_S = 10.0
PERIOD = "--node-status-update-frequency=1s"
NODE = "serving-1"
LEASE = ("cloud-controller-manager", "kube-system")
METRICS = (
    "leader_election_master_status",
    "leader_election_slowpath_total",
    'running_managed_controllers{manager="cloud-controller-manager",name="cloud-node"}',
    "node_controller_cloud_provider_taint_removal_delay_seconds_bucket",
    "node_controller_initial_node_sync_delay_seconds_bucket",
    "openstack_api_requests_total",
    "openstack_api_request_duration_seconds_bucket",
)


def ask(
    where: places.Places, path: str, token: str = "", user: str = ""
) -> tuple[int, str]:
    """Ask with somebody's token, or the certificate of a user of the lab."""
    context = tls.unverified()
    if user:
        folder = kube_files.certificates(where)
        context.load_cert_chain(folder / f"{user}.crt", folder / f"{user}.key")
    connection = http.client.HTTPSConnection(
        "127.0.0.1", where.port(ccm.PORT), timeout=20, context=context
    )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


Running = Callable[[str], AbstractContextManager[places.Places]]


@pytest.fixture(scope="module")
def running(
    where: places.Places, ccm_pex: pathlib.Path, ccm_kubeconfig: pathlib.Path
) -> Running:
    """Return a function that runs openstack-ccm as its own account on a cloud.conf."""

    @contextlib.contextmanager
    def run(conf: str) -> Iterator[places.Places]:
        file = where.state / "serving-cloud.conf"
        file.write_text(conf)
        authorities = kube_files.certificates(where) / "ca.crt"
        more = [PERIOD, f"--client-ca-file={authorities}"]
        processes.stop(where, [ccm.NAME])
        ccm.start(where, ccm_pex, ccm.arguments(where, ccm_kubeconfig, file, more))
        try:
            yield where
        finally:
            processes.stop(where, [ccm.NAME])

    return run


@pytest.fixture(scope="module")
def conf(where: places.Places, project: MakeProject) -> str:
    return accounts.cloud_conf(where, project("serving")[0])


@pytest.fixture(scope="module")
def serving(running: Running, conf: str) -> Iterator[places.Places]:
    """Run one openstack-ccm for several tests; `running` takes its place."""
    with running(conf) as place:
        yield place


@pytest.fixture()
def node(api: client.Api) -> Iterator[None]:
    """A Node of the cloud, initialised, so that each address pass asks the cloud."""
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "spec": {"providerID": "openstack:///00000000-0000-4000-8000-000000000001"},
    }
    api.create(resources.NODES, json.dumps(body).encode(), timeout_s=10)
    yield
    cluster.delete_node(api, NODE)


@pytest.fixture(scope="module")
def token(api: client.Api) -> Callable[[str], str]:
    cluster.create_all(api, READERS)

    def of(account: str) -> str:
        path = resources.SERVICE_ACCOUNTS.path("default", account, "token")
        answer = api.request("POST", path, body=b"{}", timeout_s=10)
        return str(json.loads(answer)["status"]["token"])

    return of


def test_the_api_server_says_who_may_read(
    serving: places.Places, token: Callable[[str], str]
) -> None:
    """Probes are open; the rest takes a token or a certificate, and the right."""
    waiting.until("ready", lambda: ask(serving, "/readyz")[0] == 200)
    assert [ask(serving, path)[0] for path in OPEN] == [200] * len(OPEN)
    for who, expected in (
        ("", 401),
        ("not-a-token", 401),
        (token("may-not"), 403),
        (token("may-read"), 200),
    ):
        answers = [ask(serving, path, who)[0] for path in GUARDED]
        assert answers == [expected] * len(GUARDED)
    for user, expected in (("admin", 200), ("kube-controller-manager", 403)):
        answers = [ask(serving, path, user=user)[0] for path in GUARDED]
        assert answers == [expected] * len(GUARDED)


def test_what_the_reference_serves_is_served(
    serving: places.Places, token: Callable[[str], str]
) -> None:
    """A check per controller and one of the Lease; its metrics; its configuration."""
    waiting.until("leading", lambda: "node" in ask(serving, "/healthz?verbose=1")[1])
    checks = ask(serving, "/healthz?verbose=1")[1]
    for name in (
        "leaderElection",
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
    ):
        assert f"[+]{name} ok" in checks
    waiting.until("ready", lambda: ask(serving, "/readyz")[0] == 200)
    mine = token("may-read")
    metrics = ask(serving, "/metrics", mine)[1]
    assert [name for name in METRICS if f"\n{name}" not in metrics] == []
    health = ask(serving, "/metrics/slis", mine)[1]
    assert 'kubernetes_healthcheck{name="leaderElection",type="healthz"} 1.0' in health
    text = ask(serving, "/configz", mine)[1]
    (shown,) = json.loads(text).values()
    assert shown["Generic"]["LeaderElection"]["resourceLock"] == "leases"
    assert shown["NodeStatusUpdateFrequency"] == "1s"
    assert f'"{layout.PASSWORD}"' not in text


@pytest.mark.usefixtures("node")
def test_a_silent_cloud_costs_neither_life_nor_readiness(
    serving: places.Places,
) -> None:
    """Once ready always ready: an outage of the cloud is no reason to restart."""
    waiting.until("ready", lambda: ask(serving, "/readyz")[0] == 200)
    leases.mark_damaged(serving, "some of its services were frozen")
    frozen = [processes.find(serving, name) for name in SILENT]
    assert all(frozen)
    tree = [
        process
        for program in frozen
        if program
        for process in (program, *program.children(recursive=True))
    ]
    for program in tree:
        program.send_signal(signal.SIGSTOP)
    answered = 0
    try:
        end = time.monotonic() + SILENT_S
        # At least twice, however long one answer takes.
        while time.monotonic() < end or answered < 2:
            assert [ask(serving, path)[0] for path in OPEN] == [200] * len(OPEN)
            answered += 1
            time.sleep(0.5)
    finally:
        for program in tree:
            program.send_signal(signal.SIGCONT)
    assert ask(serving, "/readyz")[0] == 200
    waiting.until(
        "OpenStack answers",
        lambda: all(row.is_answering for row in lab.status(serving)),
    )
    leases.mark_repaired(serving)


def test_a_cloud_never_reached_is_alive_and_not_ready(
    where: places.Places, running: Running, conf: str
) -> None:
    """Nobody listens at auth-url: said by /readyz and the log, not by a restart."""
    right = layout.of(where).url(layout.KEYSTONE, "/v3")
    assert right in conf
    with running(conf.replace(right, "http://127.0.0.1:1/v3")) as place:
        name = "cloud-node-controller"
        waiting.until("leading", lambda: name in ask(place, "/healthz?verbose=1")[1])
        time.sleep(3)
        assert [ask(place, path)[0] for path in OPEN] == [200, 200, 500]
        assert processes.find(place, ccm.NAME) is not None


def test_a_daemon_told_to_end_releases_its_lease(
    running: Running, conf: str, api: client.Api
) -> None:
    """SIGTERM leaves a Lease without a holder: the successor need not wait."""

    def holder() -> str:
        body = api.read(resources.LEASES, *LEASE, timeout_s=10)
        return str(json.loads(body)["spec"].get("holderIdentity", ""))

    with running(conf) as place:
        name = "cloud-node-controller"
        waiting.until("leading", lambda: name in ask(place, "/healthz?verbose=1")[1])
        assert holder() != ""
    assert holder() == ""
