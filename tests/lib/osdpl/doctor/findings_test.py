"""What the facts of `mooring doctor osdpl` mean: each function, good and bad."""

import datetime
from collections.abc import Iterable
from typing import Any

import pytest

from lib.doctor.model import CheckResult, CheckState
from lib.helm import model as helm
from lib.osdpl.doctor import diagnosis, findings
from lib.osdpl.doctor.findings import ChartFact, WebhookFact
from lib.osdpl.reconcile.snapshot import Blocker, Refused
from lib.osdpl.webhook import webhook_certificate

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
NAMES = ("webhook.openstack.svc",)
HELD = webhook_certificate.step(None, (), NAMES, NOW).held
LATER = NOW + datetime.timedelta(days=300)


def definition(served: bool, manager: str = "osdpl-controller") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": manager}
    versions = [{"name": "v1alpha1", "served": served}, {"name": "v2", "served": True}]
    return {"metadata": {"labels": labels}, "spec": {"versions": versions}}


def revision(status: helm.Status, age_s: float = 9.0) -> helm.Revision:
    return helm.Revision(
        name="nova",
        namespace="openstack",
        number=1,
        status=status,
        labels={},
        secret_name="secret",
        secret_uid="1",
        resource_version="1",
        modified_at=NOW - datetime.timedelta(seconds=age_s),
    )


def releases(status: helm.Status, age_s: float = 9.0) -> tuple[CheckResult, ...]:
    return findings.releases({"nova": revision(status, age_s)}, {}, NOW)


def webhook(
    published: tuple[bytes, ...] | None = (HELD.bundle,),
    held: webhook_certificate.Held | None = HELD,
    answer: str = "denied the request: x",
    now: datetime.datetime = NOW,
) -> Iterable[CheckResult]:
    return findings.webhook(WebhookFact(published, held, answer), NAMES, now)


CHART = ChartFact("nova", "nova", "1", "https://x")
REFUSED = Blocker(Refused.POD_SECURITY, "privileged pods are refused")
PENDING = helm.Status.PENDING_INSTALL
ROWS: dict[str, tuple[Iterable[CheckResult], list[CheckState]]] = {
    "definition": (findings.definition("x", definition(True), True), [CheckState.OK]),
    "definition missing": (findings.definition("x", None, False), [CheckState.FAILED]),
    "definition of another version": (
        findings.definition("x", definition(False), False),
        [CheckState.FAILED],
    ),
    "definition of another controller": (
        findings.definition("x", definition(True, "other"), True),
        [CheckState.FAILED],
    ),
    "not a bundle": (
        findings.definition("x", definition(True, "other"), False),
        [CheckState.OK],
    ),
    "pods": (findings.pods("openstack", None), [CheckState.OK]),
    "pods refused": (findings.pods("openstack", REFUSED), [CheckState.FAILED]),
    "namespace missing": (
        findings.pods("openstack", Blocker(Refused.NAMESPACE_MISSING, "absent")),
        [CheckState.FAILED],
    ),
    "roles": (
        findings.nodes([("a", "on"), ("b", "on")], [{"a": "on"}, {"b": "off"}]),
        [CheckState.OK, CheckState.FAILED],
    ),
    "no role": (findings.nodes([], []), []),
    "classes": (
        findings.storage({"one": "a", "two": "b"}, frozenset({"a"})),
        [CheckState.OK, CheckState.FAILED],
    ),
    "no class": (findings.storage({}, frozenset()), [CheckState.FAILED]),
    "charts": (findings.charts([CHART]), [CheckState.OK]),
    "chart unreadable": (
        findings.charts([CHART, ChartFact("etcd", "etcd", "1", "https://x", "gone")]),
        [CheckState.FAILED, CheckState.OK],
    ),
    "deployed": (releases(helm.Status.DEPLOYED), [CheckState.OK]),
    "failed": (releases(helm.Status.FAILED), [CheckState.FAILED, CheckState.OK]),
    "pending": (releases(PENDING), [CheckState.WARNING, CheckState.OK]),
    "pending for long": (releases(PENDING, 3601), [CheckState.FAILED, CheckState.OK]),
    "unreadable": (
        findings.releases(
            {"nova": revision(helm.Status.DEPLOYED)}, {"nova": "not a release"}, NOW
        ),
        [CheckState.FAILED, CheckState.OK],
    ),
    "Secrets": (findings.secrets((), ()), [CheckState.OK]),
    "Secret missing": (findings.secrets(("absent",), ()), [CheckState.FAILED]),
    "credentials missing": (
        findings.secrets((), ("generated-x",)),
        [CheckState.WARNING],
    ),
    "webhook": (webhook(), [CheckState.OK, CheckState.OK]),
    "webhook absent": (webhook(None), [CheckState.WARNING]),
    "certificate absent": (webhook(held=None), [CheckState.FAILED, CheckState.OK]),
    "certificate ends": (webhook(now=LATER), [CheckState.FAILED, CheckState.OK]),
    "another authority": (webhook((b"",)), [CheckState.FAILED, CheckState.OK]),
    "webhook not reached": (
        webhook(answer='failed calling webhook "x"'),
        [CheckState.OK, CheckState.FAILED],
    ),
    "webhook not asked": (webhook(answer=""), [CheckState.OK, CheckState.FAILED]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_fact_is_judged(name: str) -> None:
    lines, expected = ROWS[name]
    observed = tuple(lines)
    for line in observed:
        print(f"{name:32} {line.state.value:4} {line.text}; {line.remedy}")
        assert line.check in findings.CHECKS
        assert bool(line.remedy) == (line.state is not CheckState.OK)
    assert [line.state for line in observed] == expected


def test_the_roles_are_those_of_pods_that_are_rendered() -> None:
    """Also labels of agents that are never rendered are in the values of neutron."""
    selector = {"node_selector_key": "openvswitch", "node_selector_value": "enabled"}
    absent = {"node_selector_key": "sriov", "node_selector_value": "enabled"}
    assert diagnosis.selectors({"ovs": selector, "agent": {"sriov": absent}}) == {
        ("openvswitch", "enabled")
    }
