"""Whatever part fails, the others are looked at, and every check has its line."""

import dataclasses
import datetime
import json
from collections.abc import Callable, Collection, Mapping

import pytest
import structlog

from lib.cloud import checkup, errors
from lib.cloud.model import InstanceRef
from lib.cloud.openstack.checkup import REMEDIES
from lib.doctor import cluster, examine, judge, node_instances
from lib.doctor.model import CheckResult, CheckState, DaemonAccount, Right
from lib.kube import client, greeting, resources
from lib.kube import errors as kube_errors
from lib.kube.fake import api as fake_api
from lib.process import config

NOW = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)
SILENT = errors.Unavailable("silent", operation="call")
KUBE_SILENT = kube_errors.Unavailable("silent", operation="GET /")
RIGHT = Right("list", "", "nodes")
WANTED = examine.Expected(
    "openstack",
    REMEDIES,
    (RIGHT,),
    "kube-system",
    "the-lease",
    "openstack-ccm",
    components=("openstack-ccm",),
)


@dataclasses.dataclass
class FakeCloud:
    """A cloud that is well, but for the call named in `silent`."""

    silent: str = ""
    region: str = "here"
    warnings: tuple[str, ...] = ()

    def _call(self, name: str) -> None:
        if name == self.silent:
            raise SILENT

    def time(self) -> datetime.datetime:
        self._call("time")
        return NOW

    def login(self) -> checkup.Login:
        self._call("login")
        return checkup.Login("u", "p")

    def services(self) -> tuple[checkup.ServiceEndpoint, ...]:
        self._call("services")
        return (checkup.ServiceEndpoint("compute", True, "http://nova", "2.1"),)

    def quotas(self) -> checkup.Quotas:
        self._call("quotas")
        return {"compute": (checkup.Quota("servers", 1, 10),)}

    def balancing(self) -> checkup.Balancing:
        self._call("balancing")
        return checkup.Balancing("2.30")

    def rights(self) -> tuple[checkup.ComponentRights, ...]:
        self._call("rights")
        return (checkup.ComponentRights("a", True, 3),)

    def offered(self) -> checkup.Offered:
        return {}

    def routing(self) -> checkup.Routing:
        self._call("routing")
        return checkup.Routing("[Route] router-id", "r", 1, 2)


class Answering(fake_api.FakeApi):
    """A fake API server that also answers questions for rights.

    broken: a word in the paths that are not answered.
    """

    def __init__(self, *, allowed: bool) -> None:
        super().__init__()
        self.allowed = allowed
        self.broken = ""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        if self.broken and self.broken in path:
            raise KUBE_SILENT
        if path.endswith("accessreviews"):
            return json.dumps({"status": {"allowed": self.allowed}}).encode()
        return super().request(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
        )


def ground(*, allowed: bool = True) -> Answering:
    api = Answering(allowed=allowed)
    spec = {
        "holderIdentity": "a_1",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T11:59:58.000000Z",
    }
    name = {"name": "the-lease", "namespace": "kube-system"}
    api.put(resources.LEASES, {"metadata": name, "spec": spec})
    node = {"providerID": "openstack:///a"}
    api.put(resources.NODES, {"metadata": {"name": "n"}, "spec": node})
    about = {
        "name": "p",
        "namespace": "kube-system",
        "labels": {"app.kubernetes.io/name": "openstack-ccm"},
    }
    status = {"containerStatuses": [{"name": "c", "ready": True}]}
    api.put(resources.PODS, {"metadata": about, "status": status})
    return api


def doors(
    cloud: Callable[[], checkup.Checkup] | None = None,
    api: Answering | None = None,
    greet: Callable[[], greeting.Greeting] | None = None,
) -> examine.Sources:
    asked = api or ground()
    return examine.Sources(
        cloud or (lambda: FakeCloud()),
        greet or (lambda: greeting.Greeting("v1.36.3", NOW)),
        lambda: cluster.ClusterReader(asked, 1.0),
    )


def look(sources: examine.Sources) -> dict[str, list[CheckResult]]:
    lines: dict[str, list[CheckResult]] = {}
    for finding in examine.examine(sources, WANTED, lambda: NOW):
        lines.setdefault(finding.check, []).append(finding)
    assert list(lines) == list(judge.CHECKS), "in their order, none missing"
    return lines


def states(lines: dict[str, list[CheckResult]], state: CheckState) -> set[str]:
    return {name for name, results in lines.items() if results[0].state is state}


def test_all_is_well() -> None:
    lines = look(doors())
    assert states(lines, CheckState.OK) == set(judge.CHECKS)
    assert examine.is_well(tuple(f for results in lines.values() for f in results))


def no_file() -> checkup.Checkup:
    raise config.ConfigError(["cloud.conf: a", "cloud.conf: b"])


def no_server() -> greeting.Greeting:
    raise KUBE_SILENT


WITH_TOKEN = {judge.ENDPOINTS, judge.QUOTAS, judge.BALANCERS, judge.ROUTES} | {
    judge.CLOUD_RIGHTS
}
CLOUD_SIDE = {judge.CREDENTIALS, *WITH_TOKEN, judge.CLOUD_CLOCK}
CLUSTER_SIDE = {
    judge.KUBE_CLOCK,
    judge.RIGHTS,
    judge.LEASE,
    judge.PROVIDER_IDS,
    judge.PODS,
}


def test_a_bad_file_leaves_the_cluster_to_be_looked_at() -> None:
    lines = look(doors(no_file))
    assert states(lines, CheckState.FAILED) == {judge.CLOUD_CONF}
    assert lines[judge.CLOUD_CONF][0].text == "cloud.conf: a; cloud.conf: b"
    assert states(lines, CheckState.SKIPPED) == CLOUD_SIDE


def test_a_silent_api_server_leaves_the_cloud_to_be_looked_at() -> None:
    lines = look(doors(greet=no_server))
    assert states(lines, CheckState.FAILED) == {judge.API_SERVER}
    assert states(lines, CheckState.SKIPPED) == CLUSTER_SIDE


@pytest.mark.parametrize(
    ("silent", "bad", "skipped"),
    [
        ("login", {judge.CREDENTIALS}, WITH_TOKEN),
        ("services", set(), {judge.ENDPOINTS}),
        ("quotas", set(), {judge.QUOTAS}),
        ("balancing", set(), {judge.BALANCERS}),
        ("routing", set(), {judge.ROUTES}),
        ("rights", set(), {judge.CLOUD_RIGHTS}),
        ("time", set(), {judge.CLOUD_CLOCK}),
    ],
)
def test_one_silent_call_to_the_cloud_costs_its_own_lines(
    silent: str, bad: set[str], skipped: set[str]
) -> None:
    lines = look(doors(lambda: FakeCloud(silent)))
    assert states(lines, CheckState.FAILED) == bad
    assert states(lines, CheckState.SKIPPED) == skipped


@pytest.mark.parametrize(
    ("broken", "bad"),
    [
        ("accessreviews", judge.RIGHTS),
        ("leases", judge.LEASE),
        ("nodes", judge.PROVIDER_IDS),
    ],
)
def test_one_silent_call_to_the_cluster_costs_its_own_lines(
    broken: str, bad: str
) -> None:
    api = ground()
    api.broken = broken
    lines = look(doors(api=api))
    assert states(lines, CheckState.FAILED) == {bad}
    assert not states(lines, CheckState.SKIPPED)


def test_a_user_who_cannot_list_pods_gets_all_other_checks() -> None:
    api = ground()
    api.broken = "pods"
    lines = look(doors(api=api))
    assert states(lines, CheckState.SKIPPED) == {judge.PODS}
    assert not states(lines, CheckState.FAILED)


@dataclasses.dataclass
class CheckingCloud(FakeCloud):
    """A cloud that checks the instances of Nodes, too."""

    problems: tuple[checkup.InstanceProblem, ...] = ()

    def instance_problems(
        self, refs: Collection[InstanceRef]
    ) -> tuple[checkup.InstanceProblem, ...]:
        self._call("instances")
        assert set(refs) == {InstanceRef("n", "openstack:///a")}
        return self.problems


MANY = tuple(checkup.InstanceProblem(f"n{i}", "bad", "mend") for i in range(25))


@pytest.mark.parametrize(
    ("cloud", "lines", "last"),
    [
        (CheckingCloud(), 1, "OK no problem of the instances of 1 Nodes"),
        (CheckingCloud(problems=MANY[:1]), 1, "WARN Node n0: bad"),
        (CheckingCloud(problems=MANY), 21, "WARN and 5 more problems of other Nodes"),
        (CheckingCloud("instances"), 1, "SKIP call: silent"),
    ],
    ids=["none", "one", "many", "not known"],
)
def test_a_cloud_may_check_the_instances_of_nodes(
    cloud: CheckingCloud, lines: int, last: str
) -> None:
    results = [
        result
        for result in examine.examine(doors(lambda: cloud), WANTED, lambda: NOW)
        if result.check == node_instances.CHECK
    ]
    assert len(results) == lines
    assert f"{results[-1].state.value} {results[-1].text}" == last


class Tripping(FakeCloud):
    """A library falls over an answer."""

    def login(self) -> checkup.Login:
        raise KeyError("token")


def test_a_bug_in_one_part_does_not_hide_the_others() -> None:
    with structlog.testing.capture_logs() as entries:
        lines = look(doors(Tripping))
    assert states(lines, CheckState.FAILED) == {judge.CREDENTIALS}
    assert (
        lines[judge.CREDENTIALS][0].text == "unexpected error in this check (KeyError)"
    )
    assert states(lines, CheckState.OK) >= {
        judge.RIGHTS,
        judge.LEASE,
        judge.CLOUD_CLOCK,
    }
    assert [entry["event"] for entry in entries] == ["unexpected error in check"]


def test_a_missing_right_is_named() -> None:
    lines = look(doors(api=ground(allowed=False)))
    assert lines[judge.RIGHTS][
        0
    ].text == "the kubeconfig's user cannot list nodes in the whole" + (" cluster")


def test_rights_of_an_account_are_asked_for_by_its_name() -> None:
    """An account that does not exist is named, rather than each of its permissions."""
    expected = dataclasses.replace(WANTED, account=DaemonAccount("ns", "sa"))
    api = ground()
    assert rights(api, expected) == "ServiceAccount ns/sa does not exist"
    about = {"name": "sa", "namespace": "ns"}
    api.put(resources.SERVICE_ACCOUNTS, {"metadata": about})
    user = "system:serviceaccount:ns:sa"
    assert rights(api, expected) == f"{user} has all 1 permissions of the manifest"


def rights(api: Answering, expected: examine.Expected = WANTED) -> str:
    results = examine.examine(doors(api=api), expected, lambda: NOW)
    (line,) = (result for result in results if result.check == judge.RIGHTS)
    return line.text


def test_rights_are_those_of_the_account_that_the_deployment_has() -> None:
    """Or of the user, who may not be allowed to review those of others."""
    api = ground()
    spec = {"template": {"spec": {"serviceAccountName": "ccm"}}}
    labels = {"app.kubernetes.io/name": "openstack-ccm"}
    about = {"name": "openstack-ccm", "namespace": "kube-system", "labels": labels}
    api.put(resources.DEPLOYMENTS, {"metadata": about, "spec": spec})
    assert rights(api).startswith("system:serviceaccount:kube-system:ccm has all")
    api.broken = "/subjectaccessreviews"
    assert rights(api).startswith("the kubeconfig's user has all")


def test_each_result_is_yielded_when_it_is_known() -> None:
    """A cloud that answers slowly does not hold back what is known before."""
    asked: list[str] = []

    class Slow(FakeCloud):
        def login(self) -> checkup.Login:
            asked.append("login")
            return super().login()

    results = examine.examine(doors(Slow), WANTED, lambda: NOW)
    assert next(results).check == judge.CLOUD_CONF
    assert asked == []
    assert next(results).check == judge.CREDENTIALS
    assert asked == ["login"]


def test_the_clock_here_is_read_in_the_middle_of_the_exchange() -> None:
    """A slow answer is no skew: 8 s under way, half of them each way."""
    times = iter(NOW + datetime.timedelta(seconds=s) for s in range(-8, 999, 8))
    cloud = FakeCloud()
    results = examine.examine(
        doors(lambda: cloud, greet=no_server), WANTED, lambda: next(times)
    )
    (line,) = (result for result in results if result.check == judge.CLOUD_CLOCK)
    assert line.state is CheckState.OK
