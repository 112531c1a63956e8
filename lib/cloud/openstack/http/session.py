"""Authentication, TLS and connections, by keystoneauth1. No call is made here."""

import contextlib
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any, TypedDict

import keystoneauth1.exceptions
import keystoneauth1.plugin
import keystoneauth1.session
import urllib3
from keystoneauth1.identity import base as identity
from keystoneauth1.identity import v3

from lib.cloud.openstack.config import section_reader
from lib.cloud.openstack.config.settings import CloudConfError, Credentials
from lib.cloud.openstack.http import failures
from lib.process import bounded_answers, config, outgoing

POOL_SIZE = 64
"""Connections kept per host: at least as many as there are workers."""
Failed = list[keystoneauth1.exceptions.ClientException]
AGENT = "openstack-cloud-controller-manager/mooring"


class _Connection(urllib3.connection.HTTPConnection):
    response_class = bounded_answers.BoundedResponse


class _TlsConnection(urllib3.connection.HTTPSConnection):
    response_class = bounded_answers.BoundedResponse


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Adapter(keystoneauth1.session.TCPKeepAliveAdapter):
    """Sends one request and reads the whole answer, both within its time.

    The library's own time-out bounds each read of a body, not the body.
    """

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._mine = threading.local()

    @contextlib.contextmanager
    def until(self, end: float) -> Iterator[None]:
        """See `within`. end: of the monotonic clock."""
        self._mine.end = end
        try:
            yield
        finally:
            self._mine.end = None

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Bound the answers of all servers."""
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *arguments: Any, **named: Any) -> Any:
        """Bound the answers that come through a proxy, and those of the proxy."""
        manager = super().proxy_manager_for(*arguments, **named)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(self, *arguments: Any, **named: Any) -> Any:
        """Send a request of this thread.

        Raises:
            ConnectTimeout: there is no whole answer in time. AnswerTooLong.
        """
        end = getattr(self._mine, "end", None)
        timeout_s = named["timeout"]
        if end is not None:
            timeout_s = min(timeout_s, end - time.monotonic())
        if timeout_s <= 0:
            raise keystoneauth1.exceptions.ConnectTimeout("no time is left")
        timeout = urllib3.Timeout(total=timeout_s)
        with outgoing.to(arguments[0].url, timeout_s):
            response = super().send(*arguments, **(named | {"timeout": timeout}))
            try:
                # Read here, and kept by the response; the library does it later.
                _ = response.content
            except OSError as error:
                _raise_for(error)
                raise
        return response


_POOLS = {"http": _Pool, "https": _TlsPool}


def _raise_for(error: BaseException) -> None:
    """Raise the errors that the library takes for a broken connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TimeoutError):
            message = "the answer did not end in time"
            raise keystoneauth1.exceptions.ConnectTimeout(message) from error
        if isinstance(cause, bounded_answers.TooLong):
            raise failures.AnswerTooLong(str(cause)) from error
        cause = cause.__cause__ or cause.__context__


class _Session(keystoneauth1.session.Session):
    """One whose token ends once, however many threads are refused at that moment.

    Without it a thread that is refused while another already authenticates is not tried
    again, and one that is refused late throws the new token away. Source:
    keystoneauth1.identity.base.BaseIdentityPlugin.invalidate.
    """

    def __init__(
        self,
        plugin: identity.BaseIdentityPlugin,
        secrets: tuple[str, ...],
        **response: Any,
    ) -> None:
        super().__init__(auth=plugin, **response)
        self.plugin = plugin
        self.secrets = secrets
        self.adapter = _Adapter(
            pool_connections=POOL_SIZE, pool_maxsize=POOL_SIZE, max_retries=0
        )
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, self.adapter)
        self._renewing = threading.Lock()
        self._mine = threading.local()

    def get_auth_headers(self, *arguments: Any, **named: Any) -> dict[str, str] | None:
        """Remember with which token this thread asks."""
        headers = super().get_auth_headers(*arguments, **named)
        self._mine.token = (headers or {}).get("X-Auth-Token")
        return headers

    def request(self, *arguments: Any, **named: Any) -> Any:
        """Record why a request of this thread has failed, inside `failures`.

        What it gives is of a package that only keystoneauth1 names.
        """
        try:
            return super().request(*arguments, **named)
        except keystoneauth1.exceptions.ClientException as error:
            noted: Failed | None = getattr(self._mine, "failed", None)
            if noted is not None:
                noted.append(error)
            raise

    @contextlib.contextmanager
    def failing(self) -> Iterator[Failed]:
        """See the function of that name."""
        failed: Failed = []
        self._mine.failed = failed
        try:
            yield failed
        finally:
            self._mine.failed = None

    def invalidate(
        self, auth: keystoneauth1.plugin.BaseAuthPlugin | None = None
    ) -> bool:
        """Throw away the token that was refused, and no other; True: ask again."""
        del auth
        with self._renewing:
            known = self.plugin.auth_ref
            if known is not None and known.auth_token == self._mine.token:
                self.plugin.invalidate()
        return True


def failing(
    session: keystoneauth1.session.Session,
) -> contextlib.AbstractContextManager[Failed]:
    """Collect how requests of this thread fail while the block lasts.

    keystoneauth1 keeps to itself why it could not read a version document. Nothing is
    collected from a session that `open_session` has not opened.
    """
    if isinstance(session, _Session):
        return session.failing()
    return contextlib.nullcontext([])


def secrets(session: keystoneauth1.session.Session) -> tuple[str, ...]:
    """Return the texts of a session that must not be shown, its token included."""
    if not isinstance(session, _Session):
        return ()
    token = getattr(session.plugin.auth_ref, "auth_token", None)
    return tuple(filter(None, (*session.secrets, token)))


def within(
    session: keystoneauth1.session.Session, seconds: float
) -> contextlib.AbstractContextManager[None]:
    """Bound all requests of this thread while the block lasts, together.

    A call may have to authenticate and to read version documents first, each with the
    time-out of the session. Without effect on a session that `open_session` has not
    opened.
    """
    if isinstance(session, _Session):
        return session.adapter.until(time.monotonic() + seconds)
    return contextlib.nullcontext()


def open_session(
    credentials: Credentials, timeout_s: float, user_agent: tuple[str, ...] = ()
) -> keystoneauth1.session.Session:
    """Return a session that authenticates with its first request.

    timeout_s: of every call, also those for tokens and version documents. A token
    that is refused (401) is replaced once per request; nothing else is retried.

    Raises:
        ConfigError: a file named in the credentials can't be read.
    """
    pair = (credentials.cert_file, credentials.key_file)
    has_pair = all(pair)
    _check_files(credentials, has_pair)
    return _Session(
        _plugin(credentials),
        (
            credentials.password,
            credentials.token,
            credentials.trustee_password,
            credentials.application_credential_secret,
        ),
        verify=not credentials.tls_insecure and (credentials.ca_file or True),
        cert=pair if has_pair else None,
        timeout=timeout_s,
        user_agent=" ".join((*user_agent, AGENT)),
    )


def _check_files(credentials: Credentials, has_pair: bool) -> None:
    named = {} if credentials.tls_insecure else {"ca-file": credentials.ca_file}
    if has_pair:
        named |= {"cert-file": credentials.cert_file, "key-file": credentials.key_file}
    problems = tuple(
        str(problem)
        for key, path in named.items()
        if path and (problem := _file_problem(f"[Global] {key}", path))
    )
    if problems:
        raise CloudConfError(problems)


def _file_problem(field: str, path: str) -> config.FieldProblem | None:
    """Return why a file cannot be used; its path is hidden where it may be a secret."""
    hidden = section_reader.may_hold_secret(path)
    rejected = config.FieldProblem(field, path, "a PEM file", hidden)
    try:
        if b"-----BEGIN" in pathlib.Path(path).read_bytes():
            return None
    except OSError:
        return rejected if hidden else config.unusable_file(field, path) or rejected
    return rejected


class _Scope(TypedDict, total=False):
    project_id: str
    project_name: str
    project_domain_id: str | None
    project_domain_name: str | None
    domain_id: str
    domain_name: str


class _UserDomain(TypedDict):
    user_domain_id: str | None
    user_domain_name: str | None


def _plugin(credentials: Credentials) -> identity.BaseIdentityPlugin:
    """Choose the way of authentication: trust, token, password, application.

    Source: gophercloud openstack/client.go (Authenticate), auth_options.go;
    gophercloud/utils openstack/clientconfig/requests.go (v3auth).
    """
    if credentials.trust_id:
        return _with_trust(credentials)
    if credentials.token:
        url = _v3(credentials.auth_url)
        return v3.Token(auth_url=url, token=credentials.token, **_scope(credentials))
    if credentials.password:
        return _with_password(credentials)
    return _with_application(credentials)


def _v3(url: str) -> str:
    """Name version 3, the only one there is, without asking Keystone for its URL."""
    return url.rstrip("/").removesuffix("/v3").removesuffix("/v2.0") + "/v3"


def _user_domain(credentials: Credentials) -> _UserDomain:
    return {
        "user_domain_id": credentials.user_domain_id or credentials.domain_id or None,
        "user_domain_name": credentials.user_domain_name
        or credentials.domain_name
        or None,
    }


def _scope(credentials: Credentials) -> _Scope:
    if credentials.tenant_id:
        return {"project_id": credentials.tenant_id}
    if credentials.tenant_name:
        return {
            "project_name": credentials.tenant_name,
            "project_domain_id": credentials.tenant_domain_id
            or credentials.domain_id
            or None,
            "project_domain_name": credentials.tenant_domain_name
            or credentials.domain_name
            or None,
        }
    if credentials.domain_id:
        return {"domain_id": credentials.domain_id}
    return {"domain_name": credentials.domain_name} if credentials.domain_name else {}


def _with_trust(credentials: Credentials) -> identity.BaseIdentityPlugin:
    return v3.Password(
        auth_url=_v3(credentials.auth_url),
        user_id=credentials.trustee_id or credentials.user_id or None,
        username=credentials.username or None,
        password=credentials.trustee_password or credentials.password,
        trust_id=credentials.trust_id,
        **_user_domain(credentials),
    )


def _with_password(credentials: Credentials) -> identity.BaseIdentityPlugin:
    return v3.Password(
        _v3(credentials.auth_url),
        credentials.password,
        credentials.user_id or None,
        credentials.username or None,
        **_user_domain(credentials),
        **_scope(credentials),
    )


def _with_application(credentials: Credentials) -> identity.BaseIdentityPlugin:
    url, secret = _v3(credentials.auth_url), credentials.application_credential_secret
    if credentials.application_credential_id:
        return v3.ApplicationCredential(
            url, secret, credentials.application_credential_id
        )
    return v3.ApplicationCredential(
        url,
        secret,
        application_credential_name=credentials.application_credential_name,
        user_id=credentials.user_id or None,
        username=credentials.username or None,
        **_user_domain(credentials),
    )
