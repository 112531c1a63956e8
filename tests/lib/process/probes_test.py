"""Probes answer as Go servers do."""

from collections.abc import Mapping, Sequence

import pytest

from lib.process import probes


class Switch:
    """A check that passes or fails as the test likes."""

    def __init__(self, why_not: str | None = None) -> None:
        self.why_not = why_not

    def __call__(self) -> str | None:
        return self.why_not


@pytest.fixture()
def checks() -> probes.Probes:
    return probes.Probes()


def test_all_well_is_a_plain_ok(checks: probes.Probes) -> None:
    assert checks.live({}) == probes.ProbeReport(True, "ok")
    assert checks.ready({}) == probes.ProbeReport(True, "ok")


def test_verbose_names_every_check(checks: probes.Probes) -> None:
    checks.add_live("leaderElection", Switch())
    report = checks.live({"verbose": ("",)}, "healthz")
    assert report.body == "[+]ping ok\n[+]leaderElection ok\nhealthz check passed\n"


def test_a_failed_check_is_named_and_its_reason_withheld(
    checks: probes.Probes, log: Sequence[Mapping[str, object]]
) -> None:
    checks.add_live("loop", Switch("no turn for 90 s"))
    report = checks.live({})
    assert not report.is_well
    assert report.body == (
        "[+]ping ok\n[-]loop failed: reason withheld\nlivez check failed\n"
    )
    assert [entry["reason"] for entry in log] == ["no turn for 90 s"]


def test_a_failure_is_logged_when_it_begins_and_when_it_ends(
    checks: probes.Probes, log: Sequence[Mapping[str, object]]
) -> None:
    switch = Switch("no")
    checks.add_live("loop", switch)
    for _ in range(3):
        checks.live({})
    switch.why_not = None
    for _ in range(3):
        checks.live({})
    assert [entry["event"] for entry in log] == [
        "health check failed",
        "health check recovered",
    ]


def test_a_check_may_be_excluded_and_an_unknown_one_is_told(
    checks: probes.Probes,
) -> None:
    checks.add_live("loop", Switch("no"))
    report = checks.live({"exclude": ("loop", "moon"), "verbose": ("",)})
    assert report.is_well
    assert "[+]loop excluded: ok\n" in report.body
    assert 'no matches for "moon"\n' in report.body


def test_readiness_once_reached_stays(checks: probes.Probes) -> None:
    """An outage of the cloud must not take the component out of service."""
    caches, credentials = Switch("not synced"), Switch()
    checks.add_ready("caches", caches)
    checks.add_ready("credentials", credentials)
    assert not checks.ready({}).is_well
    credentials.why_not = "refused"
    caches.why_not = None
    assert checks.ready({}).is_well
    caches.why_not = "lost"
    assert checks.ready({}).is_well


def test_a_heartbeat_fails_after_its_time_and_recovers() -> None:
    now = [100.0]
    heart = probes.Heartbeat(lambda: now[0])
    check = heart.within(30)
    now[0] += 30
    assert check() is None
    now[0] += 1
    assert check() == "no turn for 31 s"
    heart.beat()
    assert check() is None


def test_a_heartbeat_records_the_time_between_beats_of_a_loop_that_runs() -> None:
    now, gaps = [100.0], list[float]()
    heart = probes.Heartbeat(lambda: now[0], gaps.append)
    now[0] += 3600  # as a standby, whose loop does not run
    heart.begin()
    for seconds in (1.0, 4.5):
        now[0] += seconds
        heart.beat()
    assert gaps == [1.0, 4.5]
