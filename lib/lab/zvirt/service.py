"""The engine as a server of requests: paths outside the API, authentication, faults.

One thread carries out one request at a time; waiting happens without the lock.
"""

import collections
import dataclasses
import time
import urllib.parse
from collections.abc import Callable, Mapping

from ovirtsdk4 import types

from lib.lab.zvirt import kinds, permits, routes, seed, xml_documents
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine, Refused
from lib.lab.zvirt.sso import SingleSignOn

_HTML = "text/html;charset=UTF-8"
_JSON = "application/json"
_PREFIX = "/ovirt-engine"
_TOKEN = f"{_PREFIX}/sso/oauth/token"
_LOGOUT = f"{_PREFIX}/services/sso-logout"
_CA = f"{_PREFIX}/services/pki-resource"
_REQUESTS_KEPT = 10_000
INSTANCE = seed.identifier("instance")


@dataclasses.dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as it is recorded: without bodies, passwords and tokens.

    kind: method and route. at: seconds since 1970.
    """

    at: float
    user: str
    method: str
    path: str
    kind: str
    status: int
    correlation_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """Response. headers: besides type and length. broken: the connection ends."""

    status: int
    body: bytes
    content_type: str
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    broken: bool = False


class Service:
    """One engine and its single sign-on. ca: the PEM that pki-resource returns."""

    def __init__(
        self,
        engine: Engine,
        sso: SingleSignOn,
        ca: bytes = b"",
        sleep: Callable[[float], None] = time.sleep,
        on_request: Callable[[LoggedRequest], None] = lambda logged: None,
    ) -> None:
        """sleep: for late responses. on_request: receives every request."""
        self.engine, self.sso = engine, sso
        self._ca, self.sleep = ca, sleep
        self.requests: collections.deque[LoggedRequest] = collections.deque(
            maxlen=_REQUESTS_KEPT
        )
        self.counts: collections.Counter[str] = collections.Counter()
        self._on_request = on_request

    def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Reply | None:
        """Answer a request; None: no response, the connection stays open.

        headers: by lower-case name.
        """
        path, _, query = target.partition("?")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        short = path.removeprefix(f"{_PREFIX}/")
        with self.engine.lock:
            fault = self.engine.settings.http_fault(method, short)
        words = () if fault is None else fault.words
        match "" if fault is None else fault.name:
            case "silence":
                self._log("", method, path, 0, parameters)
                return None
            case "html":
                return self._page(method, path, int(words[2]), parameters)
            case "refuse":
                detail = xml_documents.fault(
                    "Operation Failed", f"[{' '.join(words[4:])}]"
                )
                self._log("", method, path, int(words[2]), parameters)
                return Reply(int(words[2]), detail, "application/xml;charset=UTF-8")
            case "pause":
                self.sleep(float(words[2]))
            case "no-response":
                reply = self._reply(method, path, parameters, headers, body)
                return dataclasses.replace(reply, broken=True)
            case "no-effect":
                return self._reply(
                    method, path, parameters, headers, body, is_kept=False
                )
        return self._reply(method, path, parameters, headers, body)

    def _page(
        self, method: str, path: str, status: int, parameters: Mapping[str, str]
    ) -> Reply:
        self._log("", method, path, status, parameters)
        return _html(status, "The gateway has no answer.")

    def _reply(  # noqa: PLR0913 # the parts of one request
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        is_kept: bool = True,
    ) -> Reply:
        if path in (_TOKEN, _LOGOUT):
            return self._sso(method, path, parameters, body)
        if path == _CA:
            self.engine.rule("sso-ca")
            self._log("", method, path, 200, parameters)
            return Reply(200, self._ca, "application/x-x509-ca-cert")
        with self.engine.lock:
            self.engine.run_due()
            return self._api(method, path, parameters, headers, body, is_kept)

    def _sso(
        self, method: str, path: str, parameters: Mapping[str, str], body: bytes
    ) -> Reply:
        form = dict(urllib.parse.parse_qsl(body.decode(errors="replace")))
        with self.engine.lock:
            if path == _TOKEN:
                status, answer = self.sso.token({**parameters, **form})
            else:
                status, answer = self.sso.logout({**parameters, **form})
        self._log("", method, path, status, {})
        return Reply(status, answer, _JSON)

    def _api(  # noqa: PLR0913 # the parts of one request
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        is_kept: bool,
    ) -> Reply:
        user = ""
        try:
            if path != kinds.ROOT and not path.startswith(f"{kinds.ROOT}/"):
                self.engine.refuse("call-path", "")
            user = self.sso.user(headers.get("authorization", ""))
            short = path.removeprefix(kinds.ROOT).strip("/")
            call = ApiCall(method, short, parameters, headers, body, user)
            answer = self.answer(call)
        except Refused as refused:
            self.engine.records.rollback()
            reply = _refusal(refused)
        except BaseException:
            self.engine.records.rollback()
            raise
        else:
            if is_kept:
                self.engine.records.commit()
                answer = self._await(answer)
            else:
                self.engine.records.rollback()
            location = {"Location": answer.location} if answer.location else {}
            reply = Reply(answer.status, answer.body, answer.content_type, location)
        self.engine.moved.notify_all()
        self._log(user, method, path, reply.status, parameters)
        return reply

    def answer(self, call: ApiCall) -> ApiAnswer:
        """Return the answer of the API to a call.

        Raises:
            Refused: it is not carried out.
        """
        engine = self.engine
        self._check(call)
        if not call.path:
            return self._root(call)
        match = routes.find(call.path)
        if match is None:
            engine.refuse("call-path", "")
        route, keys = match
        handler = route.handlers.get(call.method)
        if handler is None:
            engine.refuse("call-method", "")
        if engine.settings.is_forbidden(call.method, f"api/{call.path}"):
            engine.refuse("call-forbidden")
        permits.check(engine, call.user, f"{call.method} {route.kind}")
        return handler(engine, call, *keys)

    def _check(self, call: ApiCall) -> None:
        """Check the headers.

        Raises:
            Refused: one of them is not accepted.
        """
        headers, engine = call.headers, self.engine
        if headers.get("version", "4").partition(".")[0] != "4":
            engine.refuse("call-version")
        accepted = headers.get("accept", "*/*")
        if not any(part in accepted for part in ("xml", "*/*", "application/*")):
            engine.refuse("call-accept", "")
        if call.method in ("POST", "PUT") and "xml" not in headers.get(
            "content-type", ""
        ):
            engine.refuse("call-media", "")
        text = call.query.get("correlation_id", headers.get("correlation-id"))
        if text is not None and not 1 <= len(text) <= 50:
            engine.refuse("call-correlation")

    def _root(self, call: ApiCall) -> ApiAnswer:
        if call.method != "GET":
            self.engine.refuse("call-method", "")
        self.engine.rule("call-root")
        version = _version(self.engine)
        template, tag = types.Template(id=kinds.BLANK), types.Tag(id=kinds.BLANK)
        xml_documents.refer(template)
        xml_documents.refer(tag)
        api = types.Api(
            product_info=types.ProductInfo(
                name="oVirt Engine",
                vendor="ovirt.org",
                version=version,
                instance_id=INSTANCE,
            ),
            special_objects=types.SpecialObjects(blank_template=template, root_tag=tag),
            time=self.engine.time,
            summary=types.ApiSummary(vms=self._summary()),
        )
        user = types.User(id=seed.identifier("admin"), name=call.user)
        api.authenticated_user = xml_documents.refer(user)
        text = xml_documents.write(api)
        links = "".join(
            f'<link href="{kinds.ROOT}/{route.kind}" rel="{route.kind}"/>'
            for route in routes.ROUTES
            if "/" not in route.kind
        )
        return ApiAnswer(200, text.replace(b"<api>", b"<api>" + links.encode(), 1))

    def _summary(self) -> types.ApiSummaryItem:
        rows = tuple(self.engine.records.all("vm"))
        active = [row for row in rows if row.entity.status == types.VmStatus.UP]
        return types.ApiSummaryItem(active=len(active), total=len(rows))

    def _await(self, answer: ApiAnswer) -> ApiAnswer:
        """Wait until the job of an answer has ended."""
        engine = self.engine
        while answer.job and engine.is_running(answer.job):
            due = engine.next_due()
            engine.moved.wait(0.05 if due is None else max(due - engine.now, 0.001))
            engine.run_due()
        if answer.entity is None:
            return answer
        return dataclasses.replace(answer, body=xml_documents.write(answer.entity))

    def _log(
        self,
        user: str,
        method: str,
        path: str,
        status: int,
        parameters: Mapping[str, str],
    ) -> None:
        short = path.removeprefix(kinds.ROOT).strip("/")
        match = routes.find(short)
        known = path.removeprefix(f"{_PREFIX}/") if match is None else match[0].kind
        logged = LoggedRequest(
            self.engine.now,
            user,
            method,
            path,
            f"{method} {known}",
            status,
            parameters.get("correlation_id", ""),
        )
        self.requests.append(logged)
        self.counts[logged.kind] += 1
        self._on_request(logged)


def _version(engine: Engine) -> types.Version:
    chosen = engine.settings.version()
    if chosen is not None:
        return types.Version(major=chosen[0], minor=chosen[1])
    return types.Version(
        major=4, minor=5, build=6, revision=0, full_version="4.5.6-1.el8"
    )


def _html(status: int, text: str) -> Reply:
    page = f"<html><head><title>Error</title></head><body>{text}</body></html>"
    return Reply(status, page.encode(), _HTML)


def _refusal(refused: Refused) -> Reply:
    """Return the response of a refusal."""
    if refused.status == 401:
        reply = _html(401, "Unauthorized")
        return dataclasses.replace(
            reply, headers={"WWW-Authenticate": 'Basic realm="RESTAPI"'}
        )
    if refused.rule in ("call-path", "call-method", "call-media", "call-accept"):
        return _html(refused.status, "The request is not possible.")
    if not refused.reason:
        return Reply(refused.status, b"", _HTML)
    body = xml_documents.fault(refused.reason, refused.detail)
    return Reply(refused.status, body, "application/xml;charset=UTF-8")
