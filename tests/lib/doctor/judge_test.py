"""Every check has lines for what is well and for what is not: one table."""

import datetime

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


def late(seconds: float) -> Read[ClockReadings]:
    return Read(ClockReadings(NOW, NOW - datetime.timedelta(seconds=seconds)))


def held(seconds: float, holder: str = "a_1") -> Read[LeaseHolder | None]:
    return Read(LeaseHolder(holder, NOW - datetime.timedelta(seconds=seconds), 15))


def service(**more: object) -> checkup.ServiceEndpoint:
    fields = {"kind": "compute", "needed": True, "url": "http://nova", **more}
    return checkup.ServiceEndpoint(**fields)  # type: ignore[arg-type]


def nodes(*provider_ids: str, region: str | None = "here") -> tuple[CheckResult, ...]:
    listed = tuple(NodeIdentity(f"n{i}", one) for i, one in enumerate(provider_ids))
    return ids.findings(Read(listed), "openstack", region, REMEDIES)


def balancing(*named: checkup.NamedSetting, **more: object) -> tuple[CheckResult, ...]:
    fields = {"version": "2.30", "named": named, **more}
    found = checkup.Balancing(**fields)  # type: ignore[arg-type]
    return judge.balancers(Read(found), REMEDIES)


def named(
    value: str, *matches: str, error: errors.CloudError | None = None
) -> checkup.NamedSetting:
    return checkup.NamedSetting("[LoadBalancer] key", "thing", value, matches, error)


def one(finding: CheckResult) -> tuple[CheckResult, ...]:
    return (finding,)


COMPUTE, VOLUME = "compute", "block-storage"
TABLE: list[tuple[str, tuple[CheckResult, ...], str, str]] = [
    ("a good file", judge.configuration(Read(())), "OK", "it can be read"),
    ("an odd file", judge.configuration(Read(("x is odd",))), "WARN", "x is odd"),
    (
        "a bad file",
        judge.configuration(ReadFailure("cloud.conf: no auth-url")),
        "FAIL",
        "no auth-url; remedy: correct the file",
    ),
    (
        "logged in",
        one(judge.login(Read(checkup.Login("u", "p", NOW)), REMEDIES)),
        "OK",
        "as u to project p; this token ends at 2026-01-01 12:00 UTC",
    ),
    (
        "no project",
        one(judge.login(Read(checkup.Login("u", "")), REMEDIES)),
        "FAIL",
        "to no project; remedy: name the project",
    ),
    (
        "wrong password",
        one(
            judge.login(
                ReadFailure("authenticate: refused", "CredentialsRejected"), REMEDIES
            )
        ),
        "FAIL",
        "authenticate: refused; remedy: put right credentials",
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
        one(judge.service(service(version="2.1", odd="old"), "here", REMEDIES)),
        "WARN",
        "version 2.1; old; remedy: ask",
    ),
    (
        "no such service",
        one(judge.service(service(url=""), "here", REMEDIES)),
        "FAIL",
        "the catalogue has none in region here; remedy: see that region",
    ),
    (
        "no such service, not needed",
        one(judge.service(service(url="", needed=False), "", REMEDIES)),
        "SKIP",
        "the catalogue has none; what needs it can't run",
    ),
    (
        "a silent service",
        one(judge.service(service(error=SILENT), "", REMEDIES)),
        "FAIL",
        "http://nova: the cloud can't be reached; remedy: see that this URL",
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
        "none of 1 is nearly used up",
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
    ("quotas away", judge.quotas(VOLUME, SILENT), "WARN", "remedy: see that the"),
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
        "version 2.30; all that is named for them is there",
    ),
    (
        "no load balancers wanted",
        judge.balancers(Read(None), REMEDIES),
        "SKIP",
        "the configuration wants none",
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
        "get none: the cloud can't be reached; remedy: see that the load-balancer",
    ),
    (
        "load balancers without tags",
        balancing(version="2.4", has_tags=False),
        "WARN",
        "version 2.4 of the API has no tags: whose a load balancer is stands in its"
        " description, and none can be shared; remedy: ask",
    ),
    (
        "load balancers without tags, and something missing",
        balancing(named("a"), version="2.4", has_tags=False),
        "FAIL",
        "key is 'a', but",
    ),
    (
        "something for load balancers is not there",
        balancing(named("a", "a"), named("b")),
        "FAIL",
        "[LoadBalancer] key is 'b', but there is no such thing that may be used;"
        " remedy: correct the setting",
    ),
    (
        "something for load balancers can't be looked for",
        balancing(named("b", error=REFUSED)),
        "WARN",
        "can't be looked for: the cloud answered 403 Forbidden; remedy: give the",
    ),
    (
        "several would do for load balancers",
        balancing(named("", "a", "b")),
        "WARN",
        "key is not set, and the first thing of several counts: a, b; remedy: set it",
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
        "key is not set, and there is no thing: all are internal; remedy: set",
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
        "6 s behind the one here; remedy: let NTP",
    ),
    (
        "cloud's clock far ahead",
        one(judge.clock(judge.CLOUD_CLOCK, late(-61))),
        "FAIL",
        "62 s ahead of the one here",
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
    ("API server", one(judge.api_server(Read("v1.36.3"))), "OK", "answers: v1.36.3"),
    ("API server shy", one(judge.api_server(Read(""))), "OK", "answers: no version"),
    (
        "API server away",
        one(judge.api_server(ReadFailure("refused"))),
        "FAIL",
        "refused; remedy: see that the kubeconfig's server",
    ),
    ("all rights", judge.rights(21, "I", Read(())), "OK", "I has all 21 rights"),
    (
        "a right lacks",
        judge.rights(21, str(DaemonAccount("ns", "sa")), Read((PATCH,))),
        "FAIL",
        "system:serviceaccount:ns:sa may not patch nodes/status in the whole cluster",
    ),
    (
        "a right in one namespace lacks",
        judge.rights(21, "I", Read((UPDATE,))),
        "FAIL",
        "I may not update leases.coordination.k8s.io l in namespace kube-system",
    ),
    (
        "rights unknown",
        judge.rights(21, "I", ReadFailure("no")),
        "FAIL",
        "no; remedy: use",
    ),
    ("lease held", one(judge.lease("l", held(2), NOW)), "OK", "a_1 holds l, renewed 2"),
    ("no lease", one(judge.lease("l", Read(None), NOW)), "WARN", "nobody holds l"),
    (
        "lease released",
        one(judge.lease("l", held(2, ""), NOW)),
        "WARN",
        "nobody holds l: it was released; remedy: see that",
    ),
    (
        "lease of a dead holder",
        one(judge.lease("l", held(16), NOW)),
        "WARN",
        "renewed 16 s ago, though it holds for 15 s only: its holder is gone",
    ),
    (
        "lease never renewed",
        one(judge.lease("l", Read(LeaseHolder("a_1", None, 15)), NOW)),
        "WARN",
        "never renewed it",
    ),
    (
        "lease unread",
        one(judge.lease("l", ReadFailure("no"), NOW)),
        "FAIL",
        "no; remedy:",
    ),
    ("ids without region", nodes("openstack:///a"), "OK", "1 ids of this cloud, all"),
    ("ids with region", nodes("openstack://here/a"), "OK", "all with their region"),
    ("no Nodes", nodes(), "OK", "0 Nodes looked at"),
    (
        "a malformed id",
        nodes("openstack://a/b/c"),
        "FAIL",
        "Node n0: provider id 'openstack://a/b/c' is not of the form openstack:///<id>"
        " or openstack://<region>/<id>; remedy: an id can't be changed",
    ),
    (
        "an id of another cloud",
        nodes("static://x"),
        "WARN",
        "Node n0: 'static://x' is of another cloud; remedy: it is left alone",
    ),
    (
        "an id of another region",
        nodes("openstack://there/a", "openstack://here/b"),
        "WARN",
        "Node n0: its id is of region 'there', not of 'here'; remedy: it is left",
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
        "1 ids name no region while 1 are of another one",
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
        "no; remedy: see the rights",
    ),
]


def said(finding: CheckResult) -> str:
    remedy = f"; remedy: {finding.remedy}" if finding.remedy else ""
    return finding.text + remedy


def test_each_fact_gives_its_line() -> None:
    """State and words, with a remedy for each line that is not well."""
    for name, findings, state, words in TABLE:
        lines = [f"{one.state.value:4} {one.check}: {said(one)}" for one in findings]
        print(f"{name:45} {lines[0]}")
        found = [f for f in findings if f.state.value == state and words in said(f)]
        assert found, f"{name}: {lines}"
        for finding in findings:
            needs = finding.state in (CheckState.FAILED, CheckState.WARNING)
            assert bool(finding.remedy) == needs, name


def test_each_check_has_a_good_and_a_bad_line() -> None:
    """A check without both is not tested."""
    told = {(f.check, f.state) for _, findings, _, _ in TABLE for f in findings}
    for check in judge.CHECKS:
        states = {state for name, state in told if name == check}
        print(f"{check:22} {sorted(state.value for state in states)}")
        assert CheckState.OK in states, check
        assert states & {CheckState.FAILED, CheckState.WARNING}, check
    assert {check for check, _ in told} == set(judge.CHECKS)


def test_very_many_nodes_are_counted_not_listed() -> None:
    found = nodes(*[f"static://{n}" for n in range(100)])
    assert len(found) == ids.SHOWN + 2
    assert "and 80 more" in found[ids.SHOWN].text


def test_a_new_node_may_lack_its_id() -> None:
    listed = (NodeIdentity("new", "", is_new=True),)
    (only,) = ids.findings(Read(listed), "openstack", "", REMEDIES)
    assert only.state is CheckState.OK


def test_without_a_route_table_there_is_no_line() -> None:
    assert judge.routes(Read(None)) == ()
