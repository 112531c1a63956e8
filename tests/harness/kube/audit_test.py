"""What one ServiceAccount asked for is found in the audit log, and nothing else."""

import json
import pathlib

import pytest

from lib.lab import places
from tests.harness.kube import audit

ACCOUNT = ("kube-system", "openstack-ccm")
USER = "system:serviceaccount:kube-system:openstack-ccm"


def event(**parts: object) -> str:
    whole = {
        "stage": "ResponseComplete",
        "verb": "patch",
        "userAgent": "openstack-ccm/0.1.0 (linux)",
        "user": {
            "username": USER,
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]},
        },
        "objectRef": {
            "resource": "nodes",
            "subresource": "status",
            "name": "one",
            "apiVersion": "v1",
        },
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
    }
    return json.dumps(whole | parts) + "\n"


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    place = places.Places(tmp_path, tmp_path)
    place.log.mkdir()
    return place


def write(where: places.Places, *lines: str) -> None:
    (where.log / "audit.log").write_text("".join(lines))


def test_a_row_says_what_was_asked_by_which_token(where: places.Places) -> None:
    write(where, event(responseObject={"metadata": {"resourceVersion": "7"}}))
    (row,) = audit.rows(where, ACCOUNT)
    assert (row.verb, row.group, row.resource) == ("patch", "", "nodes")
    assert (row.subresource, row.name, row.code) == ("status", "one", 200)
    assert (row.credential, row.version) == ("JTI=1", 7)
    assert row.agent == "openstack-ccm/0.1.0 (linux)"
    assert row.received == "2026-01-01T00:00:00.000001Z"


def test_others_and_unfinished_requests_and_half_lines_are_left_out(
    where: places.Places,
) -> None:
    """Also of another user that only uses the account's object."""
    write(
        where,
        event(user={"username": "admin"}, objectRef={"name": USER}),
        event(stage="RequestReceived"),
        event(stage="ResponseStarted", verb="watch"),
        event()[:-20],
    )
    assert [row.verb for row in audit.rows(where, ACCOUNT)] == ["watch"]


def test_a_log_that_grows_is_read_on_and_a_new_one_from_its_start(
    where: places.Places,
) -> None:
    """As after a reset of the control plane."""
    first, last = event(auditID="1", verb="get"), event(verb="list")
    write(where, first, last[:-20])
    assert [row.verb for row in audit.rows(where, ACCOUNT)] == ["get"]
    write(where, first, last)
    assert [row.verb for row in audit.rows(where, ACCOUNT)] == ["get", "list"]
    write(where, event(auditID="2", verb="watch"), last, last)
    verbs = [row.verb for row in audit.rows(where, ACCOUNT)]
    assert verbs == ["watch", "list", "list"]


def test_a_request_for_no_object_has_no_version(where: places.Places) -> None:
    write(where, event(objectRef={}, responseStatus={}))
    (row,) = audit.rows(where, ACCOUNT)
    assert (row.resource, row.code, row.version) == ("", 0, 0)
