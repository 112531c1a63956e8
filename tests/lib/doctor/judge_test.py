"""Every check has lines for what is well and for what is not: one table."""

import datetime

import pytest

from lib.cloud import checkup, errors
from lib.cloud.openstack.checkup import REMEDIES
from lib.doctor import ids, judge
from lib.doctor.model import (
    CheckResult,
    CheckState,
    ClockReadings,
    DaemonAccount,
    LeaseHolder,
    NodeIdentity,
    PodProblem,
    PodReport,
    Read,
    ReadFailure,
    Right,
)

NOW = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)
SILENT = errors.Unavailable("the cloud can't be reached", operation="reach")
REFUSED = errors.Forbidden("the cloud answered 403 Forbidden", operation="GET")
ABSENT = errors.NotFound("not found", operation="get router")
DAY = datetime.timedelta(days=1)
PATCH = Right("patch", "", "nodes", "status")
UPDATE = Right("update", "coordination.k8s.io", "leases", "", "kube-system", "l")

NO_IMAGE = PodProblem("n", "p", "c", "ErrImagePull", "not found")


def late(seconds: float) -> Read[ClockReadings]:
    return Read(ClockReadings(NOW, NOW - datetime.timedelta(seconds=seconds)))


def held(
    seconds: float, holder: str = "a_1", work: str = ""
) -> Read[LeaseHolder | None]:
    renewed_at = NOW - datetime.timedelta(seconds=seconds)
    return Read(LeaseHolder(holder, renewed_at, 15, work))


def service(**more: object) -> checkup.ServiceEndpoint:
    fields = {"kind": "compute", "needed": True, "url": "http://nova", **more}
    return checkup.ServiceEndpoint(**fields)  # type: ignore[arg-type]


def nodes(*provider_ids: str, region: str | None = "here") -> tuple[CheckResult, ...]:
    listed = tuple(
        NodeIdentity(f"n{i}", provider_id) for i, provider_id in enumerate(provider_ids)
    )
    return ids.findings(Read(listed), "openstack", region, REMEDIES)


def balancing(*named: checkup.NamedSetting, **more: object) -> tuple[CheckResult, ...]:
    fields = {"version": "2.30", "named": named, **more}
    settings = checkup.Balancing(**fields)  # type: ignore[arg-type]
    return judge.balancers(Read(settings), REMEDIES)


def named(
    value: str, *matches: str, error: errors.CloudError | None = None
) -> checkup.NamedSetting:
    return checkup.NamedSetting("[LoadBalancer] key", "thing", value, matches, error)


def one(finding: CheckResult) -> tuple[CheckResult, ...]:
    return (finding,)


COMPUTE, VOLUME = "compute", "block-storage"


def login(*roles: str, is_reader: bool = False) -> Read[checkup.Login]:
    return Read(checkup.Login("u", "p", None, roles, is_reader))


TABLE: list[tuple[str, tuple[CheckResult, ...], str, str]] = [
    ("a good file", judge.configuration(Read(())), "OK", "valid"),
    ("an odd file", judge.configuration(Read(("x is odd",))), "WARN", "x is odd"),
    (
        "a bad file",
        judge.configuration(ReadFailure("cloud.conf: no auth-url")),
        "FAIL",
        "no auth-url; remedy: correct what each problem names",
    ),
    (
        "logged in",
        one(judge.login(Read(checkup.Login("u", "p", NOW)), REMEDIES)),
        "OK",
        "as u for project p; the credential expires at 2026-01-01 12:00 UTC",
    ),
    (
        "logged in with a role that writes",
        one(judge.login(login("member", "reader"), REMEDIES)),
        "OK",
        "for project p; roles: member, reader",
    ),
    (
        "logged in with a role of an administrator's own",
        one(judge.login(login("k8s-operator"), REMEDIES)),
        "OK",
        "for project p; roles: k8s-operator",
    ),
    (
        "logged in with roles that only read",
        one(judge.login(login("Reader", "other", is_reader=True), REMEDIES)),
        "FAIL",
        "roles: Reader, other: these roles cannot create or change anything; remedy:"
        " assign the role member, or load-balancer_member",
    ),
    (
        "a Secret that does not exist",
        judge.configuration(ReadFailure("--cloud-config: Secret a/b: not found")),
        "FAIL",
        "not found; remedy: create it, or name another one: --cloud-config FILE",
    ),
    (
        "no project",
        one(judge.login(Read(checkup.Login("u", "")), REMEDIES)),
        "FAIL",
        "for no project; remedy: name the project",
    ),
    (
        "wrong password",
        one(
            judge.login(
                ReadFailure("authenticate: refused", "CredentialsRejected"), REMEDIES
            )
        ),
        "FAIL",
        "authenticate: refused; remedy: correct the credentials",
    ),
    (
        "Keystone away",
        one(
            judge.login(ReadFailure("authenticate: away", "CloudUnavailable"), REMEDIES)
        ),
        "FAIL",
        "authenticate: away; remedy: see that auth-url is right",
    ),
    (
        "a service",
        one(judge.service(service(version="2.1"), "here", REMEDIES)),
        "OK",
        "compute at http://nova: version 2.1",
    ),
    (
        "an old service",
        one(judge.service(service(version="2.1", warning="old"), "here", REMEDIES)),
        "WARN",
        "version 2.1; old; remedy: ask",
    ),
    (
        "no such service",
        one(judge.service(service(url=""), "here", REMEDIES)),
        "FAIL",
        "not in the catalogue in region here; remedy: see that region",
    ),
    (
        "no such service, not needed",
        one(judge.service(service(url="", needed=False), "", REMEDIES)),
        "SKIP",
        "not in the catalogue; features that require it are unavailable",
    ),
    (
        "a silent service",
        one(judge.service(service(error=SILENT), "", REMEDIES)),
        "FAIL",
        "http://nova: the cloud can't be reached; remedy: check that this URL",
    ),
    (
        "a silent service, not needed",
        one(judge.service(service(error=SILENT, needed=False), "", REMEDIES)),
        "WARN",
        "can't be reached",
    ),
    (
        "room in the quota",
        judge.quotas(COMPUTE, (checkup.Quota("servers", 8, 10),)),
        "OK",
        "none of 1 is close to its limit",
    ),
    (
        "no limit",
        judge.quotas(COMPUTE, (checkup.Quota("servers", 8, None),)),
        "OK",
        "none of 1",
    ),
    (
        "a full quota",
        judge.quotas(COMPUTE, (checkup.Quota("servers", 9, 10),)),
        "WARN",
        "compute: 9 of 10 servers are used; remedy: free some",
    ),
    (
        "quotas refused",
        judge.quotas(VOLUME, REFUSED),
        "WARN",
        "403 Forbidden; remedy: give the user a role",
    ),
    ("quotas away", judge.quotas(VOLUME, SILENT), "WARN", "remedy: check that the"),
    (
        "as many load balancers as there may be",
        judge.quotas("load-balancer", (checkup.Quota("load balancers", 20, 20),)),
        "WARN",
        "load-balancer: 20 of 20 load balancers are used; remedy: free some",
    ),
    (
        "load balancers can be made",
        balancing(named("a", "a"), named("", "b")),
        "OK",
        "version 2.30; all objects named in the configuration exist",
    ),
    (
        "no load balancers wanted",
        judge.balancers(Read(None), REMEDIES),
        "SKIP",
        "load balancers are disabled in the configuration",
    ),
    (
        "load balancers unread",
        judge.balancers(ReadFailure("no"), REMEDIES),
        "SKIP",
        "no",
    ),
    (
        "nothing that makes load balancers",
        balancing(error=SILENT),
        "WARN",
        "get no load balancer: the cloud can't be reached; remedy: check that the",
    ),
    (
        "load balancers without tags",
        balancing(version="2.4", has_tags=False),
        "WARN",
        "version 2.4 of the API has no tags: the owner of a load balancer is recorded"
        " in its description; load balancers cannot be shared; remedy: ask",
    ),
    (
        "load balancers without tags, and something missing",
        balancing(named("a"), version="2.4", has_tags=False),
        "FAIL",
        "key is 'a': not found",
    ),
    (
        "something for load balancers is not there",
        balancing(named("a", "a"), named("b")),
        "FAIL",
        "[LoadBalancer] key is 'b': not found: no such thing is accessible;"
        " remedy: correct the setting",
    ),
    (
        "something for load balancers can't be looked for",
        balancing(named("b", error=REFUSED)),
        "WARN",
        "cannot be read: the cloud answered 403 Forbidden; remedy: give the",
    ),
    (
        "several would do for load balancers",
        balancing(named("", "a", "b")),
        "WARN",
        "key: not set; the first of several things is used: a, b; remedy: set it",
    ),
    (
        "all rights in the cloud",
        judge.cloud_rights(Read((checkup.ComponentRights("a", True, 3),))),
        "OK",
        "a: all 3",
    ),
    (
        "a right in the cloud is missing",
        judge.cloud_rights(Read((checkup.ComponentRights("a", True, 3, ("x",)),))),
        "FAIL",
        "a: the user cannot x; remedy: give the user a role",
    ),
    (
        "a right in the cloud of another component is missing",
        judge.cloud_rights(Read((checkup.ComponentRights("a", False, 3, ("x",)),))),
        "WARN",
        "allows it, unless a has other credentials",
    ),
    (
        "a router that is used",
        judge.routes(Read(checkup.Routing("[Route] router-id", "r", 2, 3))),
        "OK",
        "[Route] router-id is 'r': 2 subnets, 3 routes",
    ),
    (
        "a router without an interface",
        judge.routes(Read(checkup.Routing("[Route] router-id", "r", 0, 3))),
        "FAIL",
        "is 'r': no interface; remedy: add an interface",
    ),
    (
        "a router that is absent",
        judge.routes(Read(checkup.Routing("[Route] router-id", "r", error=ABSENT))),
        "FAIL",
        "is 'r': not found; remedy: name a router of this project",
    ),
    (
        "a router that cannot be read",
        judge.routes(Read(checkup.Routing("[Route] router-id", "r", error=SILENT))),
        "WARN",
        "is 'r': the cloud can't be reached; remedy: name a router",
    ),
    (
        "none would do for load balancers",
        balancing(named("")),
        "WARN",
        "key: not set, and there is no thing: all load balancers are internal; remedy:",
    ),
    (
        "cloud's clock right",
        one(judge.clock(judge.CLOUD_CLOCK, late(5))),
        "OK",
        "within 5 s",
    ),
    (
        "cloud's clock late",
        one(judge.clock(judge.CLOUD_CLOCK, late(7))),
        "WARN",
        "6 s behind the local clock; remedy: synchronize both clocks",
    ),
    (
        "cloud's clock far ahead",
        one(judge.clock(judge.CLOUD_CLOCK, late(-61))),
        "FAIL",
        "62 s ahead of the local clock",
    ),
    (
        "cloud's clock not told",
        one(judge.clock(judge.CLOUD_CLOCK, Read(ClockReadings(NOW, None)))),
        "SKIP",
        "no Date",
    ),
    (
        "API server's clock right",
        one(judge.clock(judge.KUBE_CLOCK, late(0))),
        "OK",
        "within 5 s",
    ),
    (
        "API server's clock late",
        one(judge.clock(judge.KUBE_CLOCK, late(90))),
        "FAIL",
        "90 s behind",
    ),
    (
        "API server's clock not read",
        one(judge.clock(judge.KUBE_CLOCK, ReadFailure("gone"))),
        "SKIP",
        "gone",
    ),
    ("API server", one(judge.api_server(Read("v1.36.3"))), "OK", "reachable: v1.36.3"),
    ("API server shy", one(judge.api_server(Read(""))), "OK", "reachable: no version"),
    (
        "API server away",
        one(judge.api_server(ReadFailure("refused"))),
        "FAIL",
        "refused; remedy: check that the kubeconfig's server",
    ),
    (
        "all rights",
        judge.rights(21, "I", Read(()), "x"),
        "OK",
        "I has all 21 permissions",
    ),
    (
        "a right lacks",
        judge.rights(21, str(DaemonAccount("ns", "sa")), Read((PATCH,)), "x"),
        "FAIL",
        "system:serviceaccount:ns:sa cannot patch nodes/status in the whole cluster",
    ),
    (
        "a right in one namespace lacks",
        judge.rights(21, "I", Read((UPDATE,)), "x"),
        "FAIL",
        "I cannot update leases.coordination.k8s.io l in namespace kube-system",
    ),
    (
        "no right at all: one cause, one line",
        judge.rights(21, "I", Read((UPDATE, PATCH) * 10), "openstack-ccm"),
        "FAIL",
        "; and 17 others; remedy: apply charts/openstack-ccm/files/rbac.yaml, and bind",
    ),
    (
        "an account that does not exist",
        (judge.no_account(DaemonAccount("kube-system", "nosuch")),),
        "FAIL",
        "ServiceAccount kube-system/nosuch does not exist; remedy: name that of",
    ),
    (
        "rights unknown",
        judge.rights(21, "I", ReadFailure("no"), "x"),
        "FAIL",
        "no; remedy: use",
    ),
    ("lease held", one(judge.lease("l", held(2), NOW)), "OK", "held by a_1, renewed 2"),
    (
        "lease of a holder with work",
        one(judge.lease("l", held(2, work="load balancers: 2 writes"), NOW)),
        "OK",
        "renewed 2 s ago; load balancers: 2 writes",
    ),
    ("no lease", one(judge.lease("l", Read(None), NOW)), "WARN", "l is not held"),
    (
        "lease released",
        one(judge.lease("l", held(2, ""), NOW)),
        "WARN",
        "l is not held: it was released; remedy: check that",
    ),
    (
        "lease of a dead holder",
        one(judge.lease("l", held(16), NOW)),
        "WARN",
        "renewed 16 s ago, and expired after 15 s: its holder has stopped",
    ),
    ("lease just before it", one(judge.lease("l", held(75), NOW)), "WARN", "has stop"),
    (
        "lease without a new holder",
        one(judge.lease("l", held(76), NOW)),
        "FAIL",
        "renewed 76 s ago, and expired after 15 s: its holder has stopped; remedy:",
    ),
    (
        "lease never renewed",
        one(judge.lease("l", Read(LeaseHolder("a_1", None, 15)), NOW)),
        "WARN",
        "never renewed",
    ),
    (
        "lease unread",
        one(judge.lease("l", ReadFailure("no"), NOW)),
        "FAIL",
        "no; remedy:",
    ),
    ("ids without region", nodes("openstack:///a"), "OK", "1 ids of this cloud, all"),
    ("ids with region", nodes("openstack://here/a"), "OK", "all with their region"),
    ("no Nodes", nodes(), "OK", "0 Nodes checked"),
    (
        "a malformed id",
        nodes("openstack://a/b/c"),
        "FAIL",
        "Node n0: provider id 'openstack://a/b/c' is not of the form openstack:///<id>"
        " or openstack://<region>/<id>; remedy: an ID is immutable",
    ),
    (
        "an id of another cloud",
        nodes("static://x"),
        "WARN",
        "Node n0: 'static://x' is of another cloud; remedy: skipped here",
    ),
    (
        "an id of another region",
        nodes("openstack://there/a", "openstack://here/b"),
        "WARN",
        "Node n0: its id is of region 'there', not of 'here'; remedy: skipped",
    ),
    (
        "every id of another region",
        nodes("openstack://there/a"),
        "FAIL",
        "none of 1 ids is of region 'here'; remedy: see that region in cloud.conf",
    ),
    (
        "ids of another region beside those of none",
        nodes("openstack://there/a", "openstack:///b"),
        "FAIL",
        "1 IDs have no region, 1 are of another region",
    ),
    (
        "both forms of ids",
        nodes("openstack://here/a", "openstack:///b", "openstack:///c"),
        "WARN",
        "2 of 3 ids name no region, the others do; remedy: harmless in one region",
    ),
    (
        "region unknown, ids by form alone",
        nodes("openstack://there/a", region=None),
        "OK",
        "all with their region",
    ),
    (
        "a Node that will never get an id",
        nodes(""),
        "WARN",
        "lacks the uninitialized taint; remedy: start its kubelet",
    ),
    (
        "Nodes unread",
        ids.findings(ReadFailure("no"), "openstack", "", REMEDIES),
        "FAIL",
        "no; remedy: see the check of rights",
    ),
    ("Pods that run", judge.pods(Read(PodReport(3))), "OK", "3 Pods run"),
    (
        "a Pod without its image",
        judge.pods(Read(PodReport(1, (NO_IMAGE,)))),
        "FAIL",
        "n/p: c: ErrImagePull: not found; remedy: check the chart's values image",
    ),
    ("Pods of no component", judge.pods(Read(PodReport(0))), "SKIP", "no Pod of"),
    ("Pods unread", judge.pods(ReadFailure("forbidden")), "SKIP", "forbidden"),
]


def said(finding: CheckResult) -> str:
    remedy = f"; remedy: {finding.remedy}" if finding.remedy else ""
    return finding.text + remedy


def test_each_fact_gives_its_line() -> None:
    """State and words, with a remedy for each line that is not well."""
    for name, findings, state, words in TABLE:
        lines = [
            f"{result.state.value:4} {result.check}: {said(result)}"
            for result in findings
        ]
        print(f"{name:45} {lines[0]}")
        matching = [f for f in findings if f.state.value == state and words in said(f)]
        assert matching, f"{name}: {lines}"
        for finding in findings:
            needs = finding.state in (CheckState.FAILED, CheckState.WARNING)
            assert bool(finding.remedy) == needs, name


def test_each_check_has_a_good_and_a_bad_line() -> None:
    """A check without both is not tested."""
    results = {(f.check, f.state) for _, findings, _, _ in TABLE for f in findings}
    for check in judge.CHECKS:
        states = {state for name, state in results if name == check}
        print(f"{check:22} {sorted(state.value for state in states)}")
        assert CheckState.OK in states, check
        assert states & {CheckState.FAILED, CheckState.WARNING}, check
    assert {check for check, _ in results} == set(judge.CHECKS)


def test_very_many_nodes_are_counted_not_listed() -> None:
    results = nodes(*[f"static://{n}" for n in range(100)])
    assert len(results) == ids.SHOWN + 2
    assert "and 80 more" in results[ids.SHOWN].text


def test_a_new_node_may_lack_its_id() -> None:
    listed = (NodeIdentity("new", "", is_new=True),)
    (only,) = ids.findings(Read(listed), "openstack", "", REMEDIES)
    assert only.state is CheckState.OK


def test_without_a_route_table_there_is_no_line() -> None:
    assert judge.routes(Read(None)) == ()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(14, "2 writes"), (16, "")],
    ids=["a Lease that holds", "an expired one"],
)
def test_the_work_of_a_holder_is_shown_while_its_lease_lasts(
    seconds: float, text: str
) -> None:
    assert judge.work(held(seconds, work="2 writes").value, NOW) == text
    assert judge.work(None, NOW) == ""
