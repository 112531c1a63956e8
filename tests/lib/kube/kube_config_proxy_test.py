"""API servers are reached through the proxy that a chart names, or directly."""

import pathlib
import typing
import urllib.parse
from collections.abc import Callable, Iterator

import pytest

from lib.cloud.dvp import config, kinds, ownership, parent
from lib.kube import errors, resources
from lib.lab.charts import charts
from lib.lab.run import waiting
from tests.harness import http_proxy

if typing.TYPE_CHECKING:
    from tests.lib.kube import conftest

SNAPSHOT = charts.of(charts.DVP_UMBRELLA)["own-secrets"]
NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES
Url = Callable[[str], str]


@pytest.fixture()
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[http_proxy.ForwardProxy]:
    with http_proxy.used(monkeypatch, SNAPSHOT, "dvp-ccm") as proxy:
        yield proxy


@pytest.fixture()
def trusted(tmp_path: pathlib.Path) -> dict[str, object]:
    """The cluster of a kubeconfig, for the certificate of the server."""
    return {
        "certificate-authority": str(tmp_path / "ca.pem"),
        "tls-server-name": "127.0.0.1",
    }


@pytest.fixture()
def url(tls_server: "conftest.StandIn") -> Url:
    """Return a function that names the server by a host."""
    port = urllib.parse.urlsplit(tls_server.url).port
    return lambda host: f"https://{host}:{port}"


@pytest.mark.parametrize(("host", "is_proxied"), http_proxy.HOSTS.items())
def test_an_api_server_is_reached_by_the_proxy_or_directly(
    tls_server: "conftest.StandIn",
    connect: "conftest.Connect",
    trusted: dict[str, object],
    url: Url,
    proxy: http_proxy.ForwardProxy,
    host: str,
    is_proxied: bool,
) -> None:
    """Its certificate is verified either way: the proxy passes bytes on."""
    tls_server.fake.put(resources.NODES, {"metadata": {"name": "a"}})
    api = connect(url(host), cluster=trusted)
    for _ in range(2):
        api.read(resources.NODES, "a", timeout_s=5)
    print(f"{host:40} {proxy.requests}")
    assert proxy.requests == [("CONNECT", host)] * is_proxied
    assert len(tls_server.requests) == 2


def test_the_parent_is_listed_and_watched_through_the_proxy(
    tls_server: "conftest.StandIn",
    kubeconfig: "conftest.WriteKubeconfig",
    trusted: dict[str, object],
    url: Url,
    proxy: http_proxy.ForwardProxy,
) -> None:
    """One tunnel for calls, one for the watch, which reports a change at once."""
    path = kubeconfig(url("parent.example"), cluster=trusted)
    env = {config.NAMESPACE: NAMESPACE, config.CLUSTER_UUID: UUID}
    opened = parent.connect(config.read(str(path), env), "test/1")
    try:
        assert list(opened.items(VMS)) == []
        for name in ("a", "b"):
            labels = {ownership.CLUSTER: UUID}
            head = {"name": name, "namespace": NAMESPACE, "labels": labels}
            tls_server.fake.put(VMS.resource, {"metadata": head})
        waiting.until("the watch", lambda: len(opened.items(VMS)) == 2)
    finally:
        opened.close()
    print(proxy.requests)
    assert set(proxy.requests) == {("CONNECT", "parent.example")}
    assert len(proxy.requests) == tls_server.connections


def _closed(proxy: http_proxy.ForwardProxy) -> None:
    proxy.close()


def _refusing(proxy: http_proxy.ForwardProxy) -> None:
    proxy.refuses = True


@pytest.mark.parametrize(
    ("change", "reason"),
    [(_closed, "connection refused"), (_refusing, "status 403")],
)
def test_a_proxy_that_fails_is_named(
    tls_server: "conftest.StandIn",
    connect: "conftest.Connect",
    trusted: dict[str, object],
    url: Url,
    proxy: http_proxy.ForwardProxy,
    change: Callable[[http_proxy.ForwardProxy], None],
    reason: str,
) -> None:
    """Its failure is not one of the server, which is not asked without it."""
    change(proxy)
    server = url("parent.example")
    api = connect(server, cluster=trusted)
    with pytest.raises(errors.Unavailable) as raised:
        api.read(resources.NODES, "a", timeout_s=5)
    operation = "GET /api/v1/nodes/a"
    assert str(raised.value) == f"{operation}: {server}: HTTP proxy: {reason}"
    assert tls_server.connections == 0
