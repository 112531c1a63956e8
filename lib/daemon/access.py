"""Authorization of --secure-port by the API server, as in the reference.

Source: k8s.io/apiserver DelegatingAuthentication- and DelegatingAuthorizationOptions.
"""

import dataclasses
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from lib.daemon import reviews
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.process import decoding, exchange, logs

K = TypeVar("K")
V = TypeVar("V")

TIMEOUT_S = 5.0
_BEARER = "bearer "
_ANYBODY = "system:authenticated"
"""The group that the API server itself adds to whomever it knows."""
_KEPT_MAX = 1000


class _User(msgspec.Struct, rename="camel"):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


@dataclasses.dataclass(frozen=True, slots=True)
class _Review:
    """Everything that a SubjectAccessReview is decided by: the key of its verdict.

    Source: Kubernetes, apiserver webhook authorizer: its cache key is the whole spec.
    """

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]
    verb: str
    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class AccessResource:
    """An object of the API server in whose place a daemon's paths are guarded.

    Source: kube-rbac-proxy, authorization.resourceAttributes.
    """

    namespace: str
    group: str
    version: str
    resource: str
    subresource: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class AccessSettings:
    """How long each answer of the API server is cached, in seconds.

    resource: what a reader of any other path must have the verb on; None: he must have
    it on the path itself.
    """

    token_s: float = 10.0
    allowed_s: float = 10.0
    denied_s: float = 10.0
    resource: AccessResource | None = None


class Access:
    """Judges requests by certificate or TokenReview, and SubjectAccessReview.

    Tokens are kept as digests only. Without an answer of the API server, access is
    denied.
    """

    def __init__(
        self,
        api: client.Api,
        settings: AccessSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._users: dict[str, tuple[float, _User | None]] = {}
        self._verdicts: dict[_Review, tuple[float, bool]] = {}
        self._limit = reviews.ReviewLimit(clock)
        self._log = logs.get(__name__)

    def authorize(self, request: exchange.Request) -> exchange.Decision:
        """Judge one request; see lib/process/exchange.py.

        A certificate counts before a token, as in the reference.
        """
        try:
            user = self._user_of(request)
            if user is None:
                return exchange.Decision.UNAUTHENTICATED
            allowed = self._allowed(user, request.method.lower(), request.path)
        except reviews.Overloaded:
            return exchange.Decision.OVERLOADED
        except kube_errors.KubeError as error:
            self._log.warning("cannot authorize the request", error=str(error))
            return exchange.Decision.FORBIDDEN
        return exchange.Decision.ALLOW if allowed else exchange.Decision.FORBIDDEN

    def _user_of(self, request: exchange.Request) -> _User | None:
        if request.peer is not None:
            return _User(request.peer.name, groups=[*request.peer.groups, _ANYBODY])
        header = request.headers.get("authorization", "")
        if not header.lower().startswith(_BEARER):
            return None
        return self._user(header[len(_BEARER) :].strip())

    def _user(self, token: str) -> _User | None:
        mark = hashlib.sha256(token.encode()).hexdigest()
        with self._lock:
            until, user = self._users.get(mark, (0.0, None))
        if until > self._clock():
            return user
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        with self._limit.admitted(mark):
            answer = self._api.create(
                resources.TOKEN_REVIEWS,
                msgspec.json.encode({**body, "spec": {"token": token}}),
                timeout_s=TIMEOUT_S,
            )
        status = decoding.decode(answer, _TokenReview).status
        user = status.user if status.authenticated else None
        if user is not None:
            self._limit.trust(mark)
        with self._lock:
            _make_room(self._users)
            self._users[mark] = (self._clock() + self._settings.token_s, user)
        return user

    def _allowed(self, user: _User, verb: str, path: str) -> bool:
        review = _review(user, verb, path)
        with self._lock:
            until, allowed = self._verdicts.get(review, (0.0, False))
        if until > self._clock():
            return allowed
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            **self._asked(verb, path),
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        caller = f"user {user.username}"
        with self._limit.admitted(caller):
            answer = self._api.create(
                resources.SUBJECT_ACCESS_REVIEWS,
                msgspec.json.encode({**body, "spec": spec}),
                timeout_s=TIMEOUT_S,
            )
        allowed = decoding.decode(answer, _AccessReview).status.allowed
        if allowed:
            self._limit.trust(caller)
        kept_s = self._settings.allowed_s if allowed else self._settings.denied_s
        with self._lock:
            _make_room(self._verdicts)
            self._verdicts[review] = (self._clock() + kept_s, allowed)
        return allowed

    def _asked(self, verb: str, path: str) -> Mapping[str, object]:
        of = self._settings.resource
        if of is None:
            return {"nonResourceAttributes": {"path": path, "verb": verb}}
        return {"resourceAttributes": {**dataclasses.asdict(of), "verb": verb}}


def _review(user: _User, verb: str, path: str) -> _Review:
    extra = sorted((key, tuple(values)) for key, values in user.extra.items())
    groups = tuple(user.groups)
    return _Review(user.username, user.uid, groups, tuple(extra), verb, path)


def _make_room(kept: dict[K, V]) -> None:
    if len(kept) >= _KEPT_MAX:
        kept.clear()
