"""Where the API server is and how to prove who we are.

The kubernetes package reads kubeconfig, service account and exec plug-ins; it is
imported on first use, for it costs time and some 15 MB. What it read is kept together
with the files it came from, so that a changed file can be noticed.
"""

import base64
import dataclasses
import io
import os
import pathlib
import threading
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import urllib3
import yaml

from lib.kube import child_processes, errors
from lib.process import config

if typing.TYPE_CHECKING:
    import kubernetes.client

SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Source: Kubernetes, Accessing the API from a Pod."""
EXEC_TIMEOUT_S = 60.0
"""An exec plug-in that has not answered by then never will."""
EXPIRY_MARGIN_S = 60.0
"""Credentials are renewed this long before they end."""

_OPERATION = "load configuration"
_FILE_FIELDS = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
_DATA_FIELDS = {
    "cluster": ("certificate-authority-data",),
    "user": ("client-certificate-data", "client-key-data"),
}

Mark = tuple[int, int, int]


class KubeconfigNode(typing.Protocol):
    """A part of a kubeconfig; path: the file it came from."""

    path: str

    def safe_get(self, key: str) -> object:
        """Return what is under `key`, None when nothing is."""
        ...


class _Whole(typing.Protocol):
    """A kubeconfig; each kind of section can be asked for by name."""

    def __getitem__(self, key: str) -> "_Whole": ...

    def safe_get(self, key: str) -> object: ...

    def get_with_name(self, name: str, safe: bool = False) -> "_Whole": ...


class _Loader(typing.Protocol):
    """The package's reader of kubeconfigs, which has no types."""

    def load_and_set(self, native: "kubernetes.client.Configuration") -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class KubeconfigSource:
    """What a configuration was asked to be read from.

    text: a kubeconfig itself; name: what errors call it. Empty: read from a file.
    """

    kubeconfig: str | None
    master: str | None
    context: str | None
    env: Mapping[str, str] = dataclasses.field(repr=False)
    service_account: pathlib.Path
    text: str = dataclasses.field(default="", repr=False)
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Configuration:
    """An API server and our credentials for it, as of one moment.

    authorization: the header's value, None for client certificates. files: all that
    were read, with the identity of their content. expires_at: seconds of the Unix
    clock, None when unlimited.
    """

    source: KubeconfigSource = dataclasses.field(repr=False)
    host: str
    authorization: str | None = dataclasses.field(repr=False)
    native: "kubernetes.client.Configuration" = dataclasses.field(repr=False)
    files: tuple[tuple[pathlib.Path, Mark | None], ...] = ()
    expires_at: float | None = None

    def is_stale(self, now: float) -> bool:
        """Report whether a file has changed, or the credentials are about to end."""
        if self.expires_at is not None and now > self.expires_at - EXPIRY_MARGIN_S:
            return True
        return any(_mark(path) != mark for path, mark in self.files)

    def reload(self) -> "Configuration":
        """Read it all again.

        Raises:
            KubeError: it can't be read now.
        """
        return _read(self.source)

    def pool(self, size: int) -> urllib3.PoolManager:
        """Return a new connection pool with this server's TLS and proxy settings."""
        from kubernetes.client import rest

        self.native.connection_pool_maxsize = size
        self.native.keep_alive = True
        pool: urllib3.PoolManager = rest.RESTClientObject(self.native).pool_manager
        return pool


def load(
    kubeconfig: str | None,
    master: str | None = None,
    context: str | None = None,
    *,
    env: Mapping[str, str],
    service_account: pathlib.Path = SERVICE_ACCOUNT,
) -> Configuration:
    """Read the configuration of one API server.

    The first of these that there is: kubeconfig, master, the pod's own, $KUBECONFIG.
    kubeconfig: one path, or several as in $KUBECONFIG. master: URL that goes before
    the kubeconfig's own server.

    Raises:
        KubeError: it can't be read; the message names file and field.

    Source: client-go clientcmd BuildConfigFromFlags, for the order.
    """
    return _read(KubeconfigSource(kubeconfig, master, context, env, service_account))


def load_text(text: str, name: str) -> Configuration:
    """Read the configuration of one API server from a kubeconfig that is in no file.

    name: what errors call it, such as the name of an environment variable. Relative
    paths in it are of the working directory.

    Raises:
        KubeError: it can't be read; the message names the field.
    """
    return _read(KubeconfigSource(None, None, None, {}, SERVICE_ACCOUNT, text, name))


def _read(source: KubeconfigSource) -> Configuration:
    if source.text:
        loaded = _of_kubeconfig(source, source.name)
    elif source.kubeconfig:
        loaded = _of_kubeconfig(source, source.kubeconfig)
    elif source.master:
        loaded = Configuration(source, source.master, None, _native())
    elif source.env.get("KUBERNETES_SERVICE_HOST"):
        loaded = _in_cluster(source)
    elif source.env.get("KUBECONFIG"):
        loaded = _of_kubeconfig(source, source.env["KUBECONFIG"])
    else:
        raise _bad("not set: must be the path of a kubeconfig, outside of a pod")
    host = (source.master or loaded.host).rstrip("/")
    if not host.startswith(("https://", "http://")):
        problem = config.rejected(host, "a URL such as https://host:6443")
        raise _bad(f"server: {problem}")
    loaded.native.host = host
    return dataclasses.replace(
        loaded, host=host, authorization=_header(loaded.authorization)
    )


def _bad(message: str) -> errors.KubeError:
    return errors.KubeError(message, operation=_OPERATION)


def _native() -> "kubernetes.client.Configuration":
    from kubernetes.client import configuration

    return configuration.Configuration()


def _header(authorization: str | None) -> str | None:
    """Tidy the value; a bad one would be quoted in full by http.client's error."""
    if authorization is None:
        return None
    value = authorization.strip()
    if not value.isascii() or not value.isprintable():
        raise _bad("the token holds characters that no token has")
    return value


def _mark(path: pathlib.Path) -> Mark | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _in_cluster(source: KubeconfigSource) -> Configuration:
    from kubernetes.config import config_exception, incluster_config

    untyped: typing.Any = incluster_config
    token = source.service_account / "token"
    authority = source.service_account / "ca.crt"
    marks = tuple((path, _mark(path)) for path in (token, authority))
    native = _native()
    loader: _Loader = untyped.InClusterConfigLoader(
        token_filename=str(token),
        cert_filename=str(authority),
        try_refresh_token=False,
        environ=source.env,
    )
    try:
        loader.load_and_set(native)
    except (OSError, ValueError, config_exception.ConfigException) as error:
        raise _bad(f"service account {source.service_account}: {error}") from error
    key = native.api_key.get("BearerToken")
    return Configuration(source, native.host, key, native, marks)


def _of_kubeconfig(source: KubeconfigSource, paths: str) -> Configuration:
    from kubernetes.config import config_exception, kube_config

    untyped: typing.Any = kube_config
    files = [] if source.text else _paths(paths)
    marks = [(path, _mark(path)) for path in files]
    try:
        _check_shapes(source, files)
        whole = untyped.KubeConfigMerger(
            io.StringIO(source.text) if source.text else paths
        ).config
        if source.text:
            whole = untyped.ConfigNode(source.name, whole)
        loader = untyped.KubeConfigLoader(
            whole, active_context=source.context, config_base_path=None
        )
        cluster, user = _sections(loader.current_context["context"], whole)
        _check_data(cluster, user)
        marks += [(path, _mark(path)) for path in _files(cluster, user)]
        return _load(source, loader, user, tuple(marks))
    except yaml.YAMLError as error:
        # Its own text quotes the line, which may hold a token.
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise _bad(f"{paths}: not YAML{line}") from None
    except (OSError, config_exception.ConfigException) as error:
        raise _bad(f"{paths}: {error}") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise _bad(f"{paths}: {_NO_KUBECONFIG}") from None


_NO_KUBECONFIG = "malformed: must be a mapping with clusters, users and contexts"


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str | None = None
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Kubeconfig(msgspec.Struct, frozen=True, rename="kebab"):
    """Fields that are used, with their types.

    Source: Kubernetes, kubeconfig (v1).
    """

    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    current_context: str | None = None


def _check_shapes(source: KubeconfigSource, files: Sequence[pathlib.Path]) -> None:
    texts = {str(file): file.read_text() for file in files if file.is_file()}
    for name, text in {source.name: source.text, **texts}.items():
        if text:
            _check_shape(yaml.safe_load(text), name)


def _check_shape(document: object, name: str) -> None:
    """Check the types of fields; the message contains no value, which may be a token.

    Raises:
        KubeError: one is of another type; the message names the field.
    """
    try:
        msgspec.convert(document, _Kubeconfig)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        field = path.strip("`.")
        if not field:
            raise _bad(f"{name}: {_NO_KUBECONFIG}") from None
        reason = f"{text[:1].lower()}{text[1:]}"
        raise _bad(f"{name}: {field}: malformed: {reason}") from None


def _paths(paths: str) -> list[pathlib.Path]:
    files = [pathlib.Path(p).expanduser() for p in paths.split(os.pathsep) if p]
    if not any(path.exists() for path in files):
        raise _bad(f"{paths}: no such file")
    return files


def _sections(
    context: Mapping[str, str], whole: "_Whole"
) -> tuple[KubeconfigNode, KubeconfigNode | None]:
    """Find the cluster and the user of the context; a user may be missing."""
    cluster = whole["clusters"].get_with_name(context["cluster"])["cluster"]
    user = None
    if context.get("user") and whole.safe_get("users"):
        named = whole["users"].get_with_name(context["user"], safe=True)
        if named is not None and named.safe_get("user"):
            user = named["user"]
    return typing.cast(KubeconfigNode, cluster), typing.cast(
        KubeconfigNode | None, user
    )


def _check_data(cluster: KubeconfigNode, user: KubeconfigNode | None) -> None:
    for node, field in _fields(cluster, user, _DATA_FIELDS):
        try:
            base64.b64decode(str(node.safe_get(field) or ""))
        except ValueError:
            # Its own text may quote a key.
            raise _bad(f"{node.path}: {field}: invalid value: must be base64") from None


def _files(cluster: KubeconfigNode, user: KubeconfigNode | None) -> list[pathlib.Path]:
    """Return the files that a context refers to, relative to their kubeconfig."""
    return [
        pathlib.Path(node.path).parent.absolute() / str(node.safe_get(field))
        for node, field in _fields(cluster, user, _FILE_FIELDS)
        if node.safe_get(field)
    ]


def _fields(
    cluster: KubeconfigNode,
    user: KubeconfigNode | None,
    names: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[KubeconfigNode, str]]:
    sections = {"cluster": cluster, "user": user}
    for section, node in sections.items():
        if node is not None:
            yield from ((node, field) for field in names[section])


def _load(
    source: KubeconfigSource,
    loader: _Loader,
    user: KubeconfigNode | None,
    marks: tuple[tuple[pathlib.Path, Mark | None], ...],
) -> Configuration:
    native = _native()
    is_exec = bool(user and user.safe_get("exec"))
    if is_exec:
        _bounded(lambda: loader.load_and_set(native), EXEC_TIMEOUT_S)
    else:
        loader.load_and_set(native)
    key = native.api_key.get("BearerToken")
    if is_exec and key is None and not native.cert_file:
        raise _bad("the exec plug-in of the kubeconfig gave no credentials")
    expiry = getattr(loader, "expiry", None)
    expires_at = expiry.timestamp() if expiry is not None else None
    return Configuration(source, native.host, key, native, marks, expires_at)


def _bounded(fn: Callable[[], None], timeout_s: float) -> None:
    """Call `fn`; when it takes too long, kill the processes that it has started.

    Its thread ends with them: it waits for nothing else.
    """
    failed: list[BaseException] = []

    def call() -> None:
        try:
            fn()
        except BaseException as error:  # handed to the caller below
            failed.append(error)

    thread = threading.Thread(target=call, daemon=True, name="exec-plug-in")
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        child_processes.kill_of_thread(thread.native_id)
        raise errors.Unavailable(
            f"the exec plug-in did not answer within {timeout_s:.0f} s",
            operation=_OPERATION,
        )
    if failed:
        raise failed[0]
