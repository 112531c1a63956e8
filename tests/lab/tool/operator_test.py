"""`mooring plan` and `mooring doctor` on a real control plane and a real OpenStack."""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import email.utils
import json
import pathlib
import re
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
import yaml

from lib.kube import client, lease, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.run import processes
from tests.harness.daemons.tool import mooring, mooring_process
from tests.harness.faults import fault_proxy
from tests.harness.openstack import regions

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
SERVER = "operator-1"
PASSWORD = "operator-s3cret"
LEASE = "operator-lease"
NOBODY = "00000000-0000-4000-8000-000000000000"
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
REDUCED = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reduced, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operator-reduced}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get, list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator-reduced}
roleRef:
  {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator-reduced}
subjects: [{kind: ServiceAccount, name: reduced, namespace: default}]
"""


LACKING = f"""
[LoadBalancer]
lb-provider = nimbus
flavor-id = {NOBODY}
subnet-id = {NOBODY}
[LoadBalancerClass "far"]
floating-network-id = {NOBODY}
"""
WEB = "operator-web"


@dataclasses.dataclass(frozen=True)
class Ground:
    """A project with one server, and the daemon's own kubeconfig."""

    server: str
    address: str
    project: str
    conf: pathlib.Path
    kubeconfig: pathlib.Path

    @property
    def words(self) -> tuple[str, ...]:
        return (f"--kubeconfig={self.kubeconfig}", f"--cloud-config={self.conf}")


@pytest.fixture(scope="module")
def ground(
    where: places.Places, project: MakeProject, ccm_kubeconfig: pathlib.Path
) -> Ground:
    account, mine = project("operator")
    server = mine.boot_another(SERVER)
    (server,) = mine.wait({server.id}, "ACTIVE")
    conf = where.state / "operator-cloud.conf"
    conf.write_text(accounts.cloud_conf(where, account))
    address = server.addresses[0]
    return Ground(server.id, address, account.project, conf, ccm_kubeconfig)


@pytest.fixture(scope="module")
def region(where: places.Places, ground: Ground) -> Iterator[regions.Region]:
    """The same project in a region whose services are behind proxies that count."""
    services = (*regions.PROXIED, layout.OCTAVIA)
    new_region = regions.Region(where, "operator-region", ground.project, services)
    with new_region.open(PASSWORD):
        yield new_region


@pytest.fixture()
def proxied(ground: Ground, region: regions.Region) -> tuple[str, ...]:
    conf = ground.conf.with_name("operator-region.conf")
    conf.write_text(region.cloud_conf(PASSWORD, 30))
    return (f"--kubeconfig={ground.kubeconfig}", f"--cloud-config={conf}")


def sent(region: regions.Region) -> set[tuple[str, str]]:
    """Return which methods each service was called with."""
    return {
        (service, request.method)
        for service, proxy in region.proxies.items()
        for request in proxy.requests()
    }


READS = {
    (layout.KEYSTONE, "POST"),
    (layout.KEYSTONE, "GET"),
    (layout.NOVA, "GET"),
    (layout.NEUTRON, "GET"),
    (layout.OCTAVIA, "GET"),
}
"""A log-in is the one POST."""


def node(name: str, provider_id: str, *, is_new: bool = False) -> Mapping[str, object]:
    taints = [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]
    spec: dict[str, object] = {"providerID": provider_id} if provider_id else {}
    if is_new:
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }


@contextlib.contextmanager
def nodes(api: client.Api, *documents: Mapping[str, object]) -> Iterator[None]:
    """Have these Nodes, and no others of this module."""
    names = [str(d["metadata"]["name"]) for d in documents]  # type: ignore[index]
    try:
        for document in documents:
            api.create(resources.NODES, json.dumps(document).encode(), timeout_s=10)
        yield
    finally:
        for name in names:
            cluster.delete_node(api, name)


OF_THE_DAEMON = frozenset({("list", "deployments"), ("get", "leases")})
"""Reads of options that have the daemon's value by default, and of who acts."""


def asked(where: places.Places, agent: str) -> set[tuple[str, str]]:
    """Return what the API server's audit log says of a user agent: verb, resource."""
    events = map(json.loads, (where.log / "audit.log").read_text().splitlines())
    return {
        (event["verb"], event.get("objectRef", {}).get("resource", ""))
        for event in events
        if event.get("userAgent", "") == agent
    }


def test_plan_shows_what_the_daemon_would_do_and_only_reads(
    where: places.Places,
    api: client.Api,
    ground: Ground,
    region: regions.Region,
    proxied: tuple[str, ...],
) -> None:
    """A new Node, one whose server is gone, and one that is known by its server."""
    gone = f"openstack:///{NOBODY}"
    desired = (
        node(SERVER, "", is_new=True),
        node("operator-gone", gone),
        # Without it an absence would not count: the project may be another one.
        node("operator-known", f"openstack:///{ground.server}"),
    )
    with nodes(api, *desired):
        table = mooring_process("plan", "nodes", *proxied)
        calls = [(request.method, request.path) for request in _nova(region)]
        print(table.stdout, calls)
        printed = mooring("plan", "nodes", *proxied, "--output=json")
    assert (table.returncode, table.stderr) == (0, "")
    document = json.loads(printed.stdout)
    actions = [(row["node"], row["action"]) for row in document["actions"]]
    mine = [row for row in actions if row[0] in (SERVER, "operator-gone")]
    assert mine == [
        (SERVER, "set addresses"),
        (SERVER, "initialize"),
        ("operator-gone", "delete"),
    ]
    rows = [row["reason"] for row in document["actions"] if row["node"] == SERVER]
    assert ground.server in rows[1]
    for action in ("set addresses", "initialize", "delete"):
        assert action in table.stdout
    used = asked(where, "mooring-plan")
    print(sorted(used))
    assert used == {("list", "nodes"), *OF_THE_DAEMON}
    assert sent(region) <= READS
    lists = [path for _, path in calls if "/servers/detail" in path]
    assert len(lists) == 1, "one list for all Nodes"


def _nova(region: regions.Region) -> Sequence[fault_proxy.Request]:
    return region.proxies[layout.NOVA].requests()


def test_plan_says_when_nothing_would_change(
    apart: places.Places, ground: Ground
) -> None:
    """In a cluster without Nodes; a control plane of its own is one."""
    control_plane.apply_manifests(apart, ccm.manifest())
    admin, kubeconfig = control_plane.admin_kubeconfig(apart), apart.state / "account"
    api = cluster.connect(admin)
    cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, kubeconfig)
    here = dataclasses.replace(ground, kubeconfig=kubeconfig)
    result = mooring_process("plan", "nodes", *here.words)
    assert result.returncode == 0
    assert result.stdout == "No changes: 0 Nodes checked.\n"


def web() -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": WEB, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    return json.dumps(document).encode()


def annotate(api: client.Api, key: str, value: str) -> None:
    annotations = {f"loadbalancer.openstack.org/{key}": value}
    body = json.dumps({"metadata": {"annotations": annotations}}).encode()
    path = (resources.SERVICES, WEB, body, "default")
    api.patch(*path, content_type=client.MERGE_PATCH, timeout_s=10)


def read_web(api: client.Api) -> Mapping[str, typing.Any] | None:
    try:
        body = api.read(resources.SERVICES, WEB, "default", timeout_s=10)
    except kube_errors.NotFound:
        return None
    service: Mapping[str, typing.Any] = json.loads(body)
    return service


class Planner:
    """Asks for plans of one Service; `serve` has the daemon carry them out."""

    words = ("plan", "services", WEB, "--cluster-name=mooring-lab")

    def __init__(self, lab: places.Places, ground: Ground, pex: pathlib.Path) -> None:
        self.lab, self.ground, self.pex = lab, ground, pex

    def plan(self, proxied: tuple[str, ...]) -> tuple[str, Mapping[str, typing.Any]]:
        """Return the state and all that goes with it."""
        result = mooring(*self.words, *proxied, "--output=json")
        assert (result.returncode, result.stderr) == (0, "")
        (row,) = json.loads(result.stdout)["services"]
        return row["state"], row

    def show(self, proxied: tuple[str, ...]) -> str:
        result = mooring_process(*self.words, *proxied)
        assert (result.returncode, result.stderr) == (0, "")
        print(result.stdout)
        return result.stdout

    def serve(self, is_done: Callable[[], bool]) -> None:
        more = ("--controllers=service-lb-controller",)
        ground = self.ground
        words = ccm.arguments(self.lab, ground.kubeconfig, ground.conf, more)
        try:
            ccm.start(self.lab, self.pex, words)
            processes.wait_for(self.lab, ccm.NAME, is_done)
        finally:
            processes.stop(self.lab, [ccm.NAME])


def changes(row: Mapping[str, typing.Any], field: str) -> list[tuple[str, str]]:
    return [
        (entry["observed"], entry["desired"])
        for change in row["changes"]
        for entry in change["fields"]
        if entry["field"] == field
    ]


def kinds(row: Mapping[str, typing.Any], action: str) -> list[str]:
    """Return the objects created, changed or deleted, without their names."""
    names = [
        change["path"][-1] for change in row["changes"] if change["action"] == action
    ]
    return [re.split(r" \w*kube_", name)[0] for name in names]


def test_plan_shows_load_balancers_and_only_reads(
    where: places.Places,
    api: client.Api,
    ground: Ground,
    region: regions.Region,
    proxied: tuple[str, ...],
    ccm_pex: pathlib.Path,
) -> None:
    """A life of a Service: what the plan says before each step is what is done."""
    planner = Planner(where, ground, ccm_pex)

    def has_address() -> bool:
        service = read_web(api)
        return bool(service and service["status"]["loadBalancer"].get("ingress"))

    shown = {"addresses": [{"type": "InternalIP", "address": ground.address}]}
    mine = node(SERVER, f"openstack:///{ground.server}")
    with nodes(api, {**mine, "status": shown}):
        api.create(resources.SERVICES, web(), "default", timeout_s=10)
        state, row = planner.plan(proxied)
        assert state == "WouldCreate"
        new = ["load balancer", "listener", "pool", "members", "floating IP"]
        assert kinds(row, "create") == new
        assert kinds(row, "change") == ["finalizer", "annotations", "status"]
        planner.serve(has_address)
        state, row = planner.plan(proxied)
        assert (state, row["changes"]) == ("InSync", [])
        annotate(api, "connection-limit", "7")
        state, row = planner.plan(proxied)
        assert state == "WouldChange"
        assert changes(row, "connection_limit") == [("-1", "7")]
        tree = planner.show(proxied)
        assert f"default/{WEB}: would change (load balancer kube_service_" in tree
        assert "connection_limit: -1 -> 7 (annotation loadbalancer.openstack" in tree
        annotate(api, "class", "gold")
        state, row = planner.plan(proxied)
        assert state == "Invalid"
        assert 'class: invalid value "gold"' in row["problems"][0]["message"]
        api.delete(resources.SERVICES, WEB, "default", timeout_s=10)
        state, row = planner.plan(proxied)
        assert state == "WouldDelete"
        assert kinds(row, "delete")[-1] == "load balancer"
        planner.serve(lambda: read_web(api) is None)
    used = asked(where, "mooring-plan")
    own = {("list", "nodes"), ("list", "services"), ("get", "namespaces")}
    assert used == own | OF_THE_DAEMON
    assert sent(region) <= READS


def lines(output: str, state: str, check: str) -> list[str]:
    return [
        line for line in output.splitlines() if line.startswith(f"{state:4}  {check}")
    ]


def late(request: fault_proxy.Request) -> fault_proxy.Answer | None:
    """Keystone's clock is a hundred seconds behind."""
    if request.method != "GET":
        return None
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=100)
    headers = {"Date": email.utils.format_datetime(then, usegmt=True)}
    return fault_proxy.Answer(200, headers, b"{}")


@contextlib.contextmanager
def silence(proxy: fault_proxy.Proxy) -> Iterator[None]:
    """Have a service take requests and say nothing."""
    over = threading.Event()

    def wait(request: fault_proxy.Request) -> fault_proxy.Answer:
        del request
        over.wait(600)
        return fault_proxy.Answer(503, {}, b"")

    with fault_proxy.answering([proxy], wait):
        try:
            yield
        finally:
            over.set()


def full(request: fault_proxy.Request) -> fault_proxy.Answer | None:
    if not request.path.endswith("/limits"):
        return None
    absolute = {"totalCoresUsed": 19, "maxTotalCores": 20}
    body = json.dumps({"limits": {"rate": [], "absolute": absolute}})
    return fault_proxy.Answer(200, {"Content-Type": "application/json"}, body.encode())


def test_doctor_is_told_by_each_service_how_it_fares(
    region: regions.Region, proxied: tuple[str, ...]
) -> None:
    """A slow clock and a full quota; the other services are still told."""
    keystone, nova = region.proxies[layout.KEYSTONE], region.proxies[layout.NOVA]
    with fault_proxy.answering([keystone], late), fault_proxy.answering([nova], full):
        result = mooring_process("doctor", *proxied, DOCTOR_TIMEOUT)
    print(result.stdout)
    assert result.returncode == 1
    (line,) = lines(result.stdout, "FAIL", "cloud's clock")
    assert re.search(r" \d+ s behind the local clock; remedy: synchronize both", line)
    (line,) = lines(result.stdout, "WARN", "quotas")
    assert "compute: 19 of 20 cores are used; remedy: free some" in line
    assert len(lines(result.stdout, "SKIP", "endpoints")) == 1, "of another region"
    assert sent(region) <= READS


CASES = (
    "healthy",
    "what load balancers need is not there",
    "wrong password",
    "Keystone unreachable",
    "Nova silent",
    "cloud.conf missing",
    "API server unreachable",
    "a right is missing",
    "an account's rights, asked for by an administrator",
    "Node of another region",
    "malformed provider id",
    "no Lease",
)


PROCESSES = ("healthy", "wrong password", "Nova silent", "cloud.conf missing")
"""Cases that run the tool as a process of its own; one per kind of outcome."""
SILENT_TIMEOUT = "--timeout=15"
DOCTOR_TIMEOUT = "--timeout=30"
"""A call of a busy OpenStack takes seconds. Only the silent row waits for its end."""


class Cases:
    """One row per case: what was said, and the exit code."""

    def __init__(self, ground: Ground, folder: pathlib.Path) -> None:
        self.ground = ground
        self.folder = folder
        self.rows: dict[str, tuple[int, str]] = {}
        self.shown: list[str] = []

    def conf(self, name: str, old: str, new: str) -> str:
        text = self.ground.conf.read_text()
        assert old in text
        file = self.folder / f"{name}.conf"
        file.write_text(text.replace(old, new))
        return f"--cloud-config={file}"

    def run(self, case: str, *words: str) -> None:
        lease_words = f"--leader-elect-resource-name={LEASE}"
        whole = ("doctor", *self.ground.words, lease_words, DOCTOR_TIMEOUT, *words)
        result = mooring_process(*whole) if case in PROCESSES else mooring(*whole)
        # Not printed here: runs in this process capture what any thread prints.
        self.rows[case] = (result.returncode, result.stdout)
        self.shown.append(
            f"== {case}: exit {result.returncode}\n{result.stdout}{result.stderr}"
        )

    def lines(self, case: str, state: str, check: str) -> list[str]:
        """Return the lines of one state and check."""
        return lines(self.rows[case][1], state, f"{check} ")


@contextlib.contextmanager
def held_lease(api: client.Api) -> Iterator[None]:
    now = datetime.datetime.now(datetime.UTC)
    record = lease.renewed(None, "operator_1", 3600, now)
    body = lease.body(None, record, "kube-system", LEASE)
    api.create(resources.LEASES, body, "kube-system", timeout_s=10)
    try:
        yield
    finally:
        with contextlib.suppress(kube_errors.NotFound):
            api.delete(resources.LEASES, LEASE, "kube-system", timeout_s=10)


def test_doctor_names_what_is_wrong(
    where: places.Places,
    api: client.Api,
    ground: Ground,
    region: regions.Region,
    proxied: tuple[str, ...],
    tmp_path: pathlib.Path,
) -> None:
    """Each case has a row; the right line has failed, and the others are still told."""
    cases = Cases(ground, tmp_path)
    good = node(SERVER, f"openstack:///{ground.server}")
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: print("\n".join(cases.shown)))
        stack.enter_context(nodes(api, good))
        stack.enter_context(held_lease(api))
        stack.enter_context(silent_nova(cases, region, proxied))
        cases.run("healthy")
        clouds(cases, where)
        clusters(cases, where, api, tmp_path)
        with nodes(api, node("operator-far", f"openstack://Elsewhere/{NOBODY}")):
            cases.run("Node of another region")
        with nodes(api, node("operator-odd", "openstack://no/such/form")):
            cases.run("malformed provider id")
    with nodes(api, good):
        cases.run("no Lease")
    assert set(cases.rows) == set(CASES)
    judge_clouds(cases)
    judge_clusters(cases)
    judge_silence(cases)
    assert sent(region) <= READS
    everything = "".join(text for _, text in cases.rows.values())
    assert "not-this-one" not in everything
    # Nothing was written: every request but the questions for rights was a read.
    used = asked(where, "mooring-doctor")
    print(sorted(used))
    reviews = {
        ("create", "selfsubjectaccessreviews"),
        ("create", "subjectaccessreviews"),
    }
    reads = {("list", "nodes"), ("list", "pods"), ("get", "serviceaccounts")}
    assert used - reviews == reads | OF_THE_DAEMON


@contextlib.contextmanager
def silent_nova(
    cases: Cases, region: regions.Region, proxied: tuple[str, ...]
) -> Iterator[None]:
    """Run the row that waits for time-outs beside the rows of the block."""
    with (
        silence(region.proxies[layout.NOVA]),
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        row = pool.submit(cases.run, "Nova silent", *proxied, SILENT_TIMEOUT)
        yield
        row.result()


def clouds(cases: Cases, where: places.Places) -> None:
    password = f'password = "{layout.PASSWORD}"'
    wrong = cases.conf("wrong", password, 'password = "not-this-one"')
    cases.run("wrong password", wrong)
    url = layout.of(where).url(layout.KEYSTONE, "/v3")
    lacking = cases.ground.conf.read_text() + LACKING
    (cases.folder / "lacking.conf").write_text(lacking)
    where_lacking = f"--cloud-config={cases.folder / 'lacking.conf'}"
    cases.run("what load balancers need is not there", where_lacking)
    silent = cases.conf("silent", url, "http://127.0.0.1:1/v3")
    cases.run("Keystone unreachable", silent)
    cases.run("cloud.conf missing", "--cloud-config=/nonexistent/cloud.conf")


def clusters(
    cases: Cases, where: places.Places, api: client.Api, folder: pathlib.Path
) -> None:
    read = yaml.safe_load(cases.ground.kubeconfig.read_text())
    read["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    nowhere = folder / "nowhere.kubeconfig"
    nowhere.write_text(yaml.safe_dump(read))
    cases.run("API server unreachable", f"--kubeconfig={nowhere}")
    cluster.create_all(api, REDUCED)
    reduced = folder / "reduced.kubeconfig"
    admin = control_plane.admin_kubeconfig(where)
    account = ("default", "reduced")
    cluster.service_account_kubeconfig(api, admin, account, reduced)
    cases.run("a right is missing", f"--kubeconfig={reduced}")
    words = (f"--kubeconfig={admin}", "--service-account=default/reduced")
    cases.run("an account's rights, asked for by an administrator", *words)


def judge_clouds(cases: Cases) -> None:
    code, output = cases.rows["healthy"]
    assert code == 0
    assert "FAIL" not in output
    for check in ("credentials", "quotas", "cloud's clock", "rights", "lease"):
        assert cases.lines("healthy", "OK", check), check
    reached = cases.lines("healthy", "OK", "endpoints")
    for kind in ("compute", "network", "load-balancer", "block-storage"):
        assert any(f" {kind} at http" in line for line in reached), kind
    assert any("microversions 2.1 to 2." in line for line in reached)
    quota_lines = cases.lines("healthy", "OK", "quotas")
    assert len(quota_lines) == 4
    (line,) = cases.lines("healthy", "OK", "load balancers")
    assert "all objects named in the configuration exist" in line
    case = "what load balancers need is not there"
    assert cases.rows[case][0] == 1
    gaps = cases.lines(case, "FAIL", "load balancers")
    assert [line.split("  ")[-1].split(" is '")[0].strip() for line in gaps] == [
        "[LoadBalancer] lb-provider",
        "[LoadBalancer] flavor-id",
        "[LoadBalancer] subnet-id",
        '[LoadBalancerClass "far"] floating-network-id',
    ]
    for case, words in (
        ("wrong password", "Keystone refuses the credentials"),
        ("Keystone unreachable", "the cloud can't be reached"),
    ):
        assert cases.rows[case][0] == 1
        (line,) = cases.lines(case, "FAIL", "credentials")
        assert words in line
        assert "remedy: " in line
        assert cases.lines(case, "SKIP", "endpoints")
        assert cases.lines(case, "OK", "rights")
    assert cases.rows["cloud.conf missing"][0] == 1
    (line,) = cases.lines("cloud.conf missing", "FAIL", "cloud configuration")
    assert "/nonexistent/cloud.conf" in line
    assert cases.lines("cloud.conf missing", "OK", "rights")


def judge_silence(cases: Cases) -> None:
    """Only the service that is silent is reported; the others are still told."""
    case = "Nova silent"
    assert cases.rows[case][0] == 1
    (line,) = cases.lines(case, "FAIL", "endpoints")
    assert "compute at http" in line
    assert "did not answer in time: http://" in line
    assert "; remedy: " in line
    assert cases.lines(case, "OK", "endpoints")


def judge_clusters(cases: Cases) -> None:
    case = "API server unreachable"
    assert cases.rows[case][0] == 1
    assert cases.lines(case, "FAIL", "API server")
    assert cases.lines(case, "OK", "credentials")
    assert cases.lines(case, "SKIP", "rights")
    case = "a right is missing"
    assert cases.rows[case][0] == 1
    gaps = cases.lines(case, "FAIL", "rights")
    (line,) = gaps
    assert re.search(r"lacks \d+ of \d+ permissions: get leases\.coord", line)
    assert re.search(
        r"; and \d+ others; remedy: apply charts/openstack-ccm/files", line
    )
    assert "list nodes" not in line
    case = "an account's rights, asked for by an administrator"
    assert cases.rows[case][0] == 1
    who = "system:serviceaccount:default:reduced"
    expected = [line.replace("the kubeconfig's user", who) for line in gaps]
    assert cases.lines(case, "FAIL", "rights") == expected
    assert cases.lines(case, "OK", "lease"), "read with the administrator's own rights"
    case = "Node of another region"
    assert cases.rows[case][0] == 1
    (line,) = cases.lines(case, "WARN", "provider ids")
    assert "Node operator-far: its id is of region 'Elsewhere'" in line
    assert cases.lines(case, "FAIL", "provider ids")
    case = "malformed provider id"
    assert cases.rows[case][0] == 1
    (line,) = cases.lines(case, "FAIL", "provider ids")
    assert "Node operator-odd: provider id 'openstack://no/such/form'" in line
    assert cases.rows["no Lease"][0] == 0
    (line,) = cases.lines("no Lease", "WARN", "lease")
    assert f"kube-system/{LEASE} is not held" in line
