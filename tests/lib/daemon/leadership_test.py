"""A daemon acts while it holds its Lease, and releases it at the end."""

import threading
from typing import Any

from lib.daemon import leadership
from lib.kube import election, resources
from lib.kube.fake import api as fake_api

PATIENCE_S = 180.0


def elected(
    api: fake_api.FakeApi, stop: threading.Event
) -> tuple[leadership.Leadership, threading.Event]:
    """Begin to lead, and return the event that is set once this process does."""
    lease = election.Election(api, namespace="kube-system", name="ccm", identity="me")
    leading, started = leadership.Leadership(lease, stop), threading.Event()
    leading.begin(started.set)
    return leading, started


def holder(api: fake_api.FakeApi) -> str:
    (document,) = api.all(resources.LEASES)
    lease: dict[str, Any] = dict(document)
    return str(lease["spec"].get("holderIdentity") or "")


def test_without_an_election_a_daemon_acts_at_once() -> None:
    stop, started = threading.Event(), threading.Event()
    leading = leadership.Leadership(None, stop)
    leading.begin(started.set)
    assert started.is_set()
    assert leading.end(PATIENCE_S) == ()
    assert not leading.has_failed
    assert not stop.is_set()


def test_a_daemon_acts_once_it_holds_the_lease_and_releases_it_at_the_end() -> None:
    api, stop = fake_api.FakeApi(), threading.Event()
    leading, started = elected(api, stop)
    assert started.wait(PATIENCE_S)
    assert holder(api) == "me"
    assert leading.end(PATIENCE_S) == ()
    assert holder(api) == ""
    assert stop.is_set()
    assert not leading.has_failed


def test_the_lease_is_kept_while_something_may_still_be_written() -> None:
    api, stop = fake_api.FakeApi(), threading.Event()
    leading, started = elected(api, stop)
    assert started.wait(PATIENCE_S)
    assert leading.end(0.1, may_release=False) == ("lease",)
    assert holder(api) == "me"
    assert leading.end(PATIENCE_S) == ()


def test_an_election_that_fails_ends_the_daemon() -> None:
    api, stop = fake_api.FakeApi(), threading.Event()

    def broken(call: object) -> None:
        raise ZeroDivisionError

    api.before_call = broken
    leading, started = elected(api, stop)
    assert stop.wait(PATIENCE_S)
    assert leading.end(PATIENCE_S) == ()
    assert leading.has_failed
    assert not started.is_set()
