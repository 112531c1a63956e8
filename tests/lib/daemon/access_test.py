"""Authorization of paths that are not always allowed."""

import contextlib
import json
from collections.abc import Mapping

import pytest

from lib.daemon import access
from lib.kube import client, errors
from lib.process.exchange import Decision, Peer, Request

USERS = {"good": "prometheus", "poor": "nobody"}


def asked(
    headers: Mapping[str, str], peer: Peer | None = None, path: str = "/metrics"
) -> Request:
    return Request("GET", path, {}, headers, peer)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Reviews(client.Api):
    """Stands in for an API server that reviews: "good" may read, "poor" may not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.specs: list[dict[str, object]] = []
        self.users: dict[str, dict[str, object]] = {
            token: {"username": name} for token, name in USERS.items()
        }
        self.allowed_specs: list[dict[str, object]] = []
        self.down = False

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
        del query, content_type, timeout_s
        self.asked.append(f"{method} {path}")
        if self.down:
            raise errors.Unavailable("down", operation=path)
        spec = json.loads(body or b"")["spec"]
        if path.endswith("tokenreviews"):
            user = self.users.get(spec["token"])
            status = {"authenticated": True, "user": user} if user else {}
            return json.dumps({"status": status}).encode()
        self.specs.append(spec)
        allowed = (
            spec["user"] == "prometheus"
            or "readers" in (spec["groups"] or ())
            or any(allowed.items() <= spec.items() for allowed in self.allowed_specs)
        )
        return json.dumps({"status": {"allowed": allowed}}).encode()

    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> contextlib.AbstractContextManager[client.WatchLines]:
        raise NotImplementedError


@pytest.fixture()
def api() -> Reviews:
    return Reviews()


@pytest.fixture()
def clock() -> Clock:
    return Clock()


@pytest.fixture()
def judge(api: Reviews, clock: Clock) -> access.Access:
    return access.Access(api, access.AccessSettings(), clock)


@pytest.mark.parametrize(
    ("headers", "decision"),
    [
        ({}, Decision.UNAUTHENTICATED),
        ({"authorization": "Basic Zm9v"}, Decision.UNAUTHENTICATED),
        ({"authorization": "Bearer forged"}, Decision.UNAUTHENTICATED),
        ({"authorization": "Bearer poor"}, Decision.FORBIDDEN),
        ({"authorization": "Bearer good"}, Decision.ALLOW),
        ({"authorization": "bearer good"}, Decision.ALLOW),
    ],
)
def test_decisions(
    judge: access.Access, headers: dict[str, str], decision: Decision
) -> None:
    assert judge.authorize(asked(headers)) is decision


@pytest.mark.parametrize(
    ("peer", "decision"),
    [
        (Peer("prometheus"), Decision.ALLOW),
        (Peer("someone", ("readers", "others")), Decision.ALLOW),
        (Peer("someone"), Decision.FORBIDDEN),
    ],
)
def test_a_certificate_names_the_user_and_his_groups(
    judge: access.Access, api: Reviews, peer: Peer, decision: Decision
) -> None:
    """No token is reviewed, not even a good one beside it; rights are asked for."""
    request = asked({"authorization": "Bearer good"}, peer)
    assert judge.authorize(request) is decision
    assert [path.rsplit("/", 1)[-1] for path in api.asked] == ["subjectaccessreviews"]


def test_two_users_of_one_name_are_told_apart_by_their_groups(
    judge: access.Access,
) -> None:
    """The answer about one user is not used for the other."""
    reader, other = Peer("someone", ("readers",)), Peer("someone")
    assert judge.authorize(asked({}, reader)) is Decision.ALLOW
    assert judge.authorize(asked({}, other)) is Decision.FORBIDDEN


@pytest.mark.parametrize(
    "narrower",
    [
        {"uid": "2", "extra": {"scopes": ["metrics"]}},
        {"uid": "1", "extra": {"scopes": ["none"]}},
        {"uid": "1", "extra": {}},
    ],
    ids=["another uid", "another extra value", "no extra"],
)
def test_a_verdict_is_cached_for_exactly_the_user_that_was_reviewed(
    api: Reviews, judge: access.Access, narrower: dict[str, object]
) -> None:
    """One name and its groups may stand for credentials with fewer permissions.

    Source: Kubernetes, apiserver webhook authorizer: its cache key is the whole spec.
    """
    api.users["wide"] = {
        "username": "scoped",
        "uid": "1",
        "extra": {"scopes": ["metrics"]},
    }
    api.users["narrow"] = {"username": "scoped", **narrower}
    api.allowed_specs.append({"uid": "1", "extra": {"scopes": ["metrics"]}})
    decisions = [
        judge.authorize(asked({"authorization": f"Bearer {token}"}))
        for token in ("wide", "narrow", "wide", "narrow")
    ]
    allow, forbid = Decision.ALLOW, Decision.FORBIDDEN
    assert decisions == [allow, forbid, allow, forbid]
    reviews = [path for path in api.asked if path.endswith("subjectaccessreviews")]
    assert len(reviews) == 2


def test_the_path_itself_is_what_a_reader_needs_the_right_to(
    judge: access.Access, api: Reviews
) -> None:
    judge.authorize(asked({"authorization": "Bearer good"}))
    (spec,) = api.specs
    assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


def test_or_an_object_in_whose_place_it_is_guarded(api: Reviews) -> None:
    """As with kube-rbac-proxy's resourceAttributes."""
    of = access.AccessResource(
        "ns", "apps", "v1", "deployments", "prometheus-metrics", "me"
    )
    judge = access.Access(api, access.AccessSettings(resource=of))
    judge.authorize(asked({"authorization": "Bearer good"}))
    (spec,) = api.specs
    assert "nonResourceAttributes" not in spec
    assert spec["resourceAttributes"] == {
        "namespace": "ns",
        "group": "apps",
        "version": "v1",
        "resource": "deployments",
        "subresource": "prometheus-metrics",
        "name": "me",
        "verb": "get",
    }


def test_a_flood_of_invented_tokens_is_refused_without_asking(
    judge: access.Access, api: Reviews
) -> None:
    """One that was authorized before is still reviewed."""
    good = {"authorization": "Bearer good"}
    assert judge.authorize(asked(good)) is Decision.ALLOW
    decisions = [
        judge.authorize(asked({"authorization": f"Bearer invented-{number}"}))
        for number in range(1000)
    ]
    assert decisions.count(Decision.OVERLOADED) > 900
    assert len(api.asked) < 60
    judge._users.clear()
    judge._verdicts.clear()
    assert judge.authorize(asked(good)) is Decision.ALLOW


def test_an_answer_is_believed_for_ten_seconds(
    judge: access.Access, api: Reviews, clock: Clock
) -> None:
    headers = {"authorization": "Bearer good"}
    for clock.now in (0.0, 9.9):
        assert judge.authorize(asked(headers)) is Decision.ALLOW
    assert len(api.asked) == 2
    clock.now = 10.1
    assert judge.authorize(asked(headers)) is Decision.ALLOW
    assert len(api.asked) == 4


def test_an_api_server_that_is_down_lets_nobody_in(
    judge: access.Access, api: Reviews
) -> None:
    api.down = True
    headers = {"authorization": "Bearer good"}
    assert judge.authorize(asked(headers)) is Decision.FORBIDDEN
