"""An engine is reached through the HTTP proxy of the environment, or directly."""

import pathlib
import urllib.parse
from collections.abc import Iterator

import pytest

from lib.cloud import errors
from lib.cloud.zvirt import client, config, http
from lib.lab.zvirt import server
from tests.harness import http_proxy
from tests.lib.lab.zvirt.served import Served, serving

ENGINE = "127.0.0.1"


@pytest.fixture()
def served(tmp_path: pathlib.Path) -> Iterator[Served]:
    with serving(tmp_path, "delay * 0.02") as engine:
        yield engine


@pytest.fixture()
def proxy() -> Iterator[http_proxy.ForwardProxy]:
    with http_proxy.running() as proxy:
        yield proxy


def engine_of(engine: Served) -> client.EngineClient:
    ca = (engine.folder / server.CA).read_text()
    settings = config.EngineConfig(engine.url, "admin@internal", engine.password, ca)
    return client.EngineClient(lambda: settings, http.connect(settings))


@pytest.mark.parametrize(
    ("variables", "is_proxied"),
    [
        ({}, False),
        ({"HTTPS_PROXY": "{}"}, True),
        ({"https_proxy": "{}", "NO_PROXY": "example.com"}, True),
        ({"HTTPS_PROXY": "{}", "NO_PROXY": ENGINE}, False),
        ({"HTTPS_PROXY": "{}", "NO_PROXY": "127.0.0.0/8"}, False),
        ({"HTTP_PROXY": "{}"}, False),
    ],
    ids=["no proxy", "a proxy", "others excluded", "excluded", "a CIDR", "HTTP alone"],
)
def test_an_engine_is_reached_by_the_proxy_or_directly(
    variables: dict[str, str],
    is_proxied: bool,
    served: Served,
    proxy: http_proxy.ForwardProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Authentication, too; its certificate is verified either way."""
    values = {name: value.format(proxy.url) for name, value in variables.items()}
    http_proxy.set_variables(monkeypatch, values)
    assert engine_of(served).root().product_info.name == "oVirt Engine"
    assert {tuple(request) for request in proxy.requests} == (
        {("CONNECT", ENGINE)} if is_proxied else set()
    )


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_proxy_that_fails_is_named(
    is_closed: bool,
    served: Served,
    proxy: http_proxy.ForwardProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    http_proxy.set_variables(monkeypatch, {"HTTPS_PROXY": proxy.url})
    proxy.refuses = True
    if is_closed:
        proxy.close()
    with pytest.raises(errors.Unavailable) as caught:
        engine_of(served).root(timeout_s=5)
    reason = "connection refused" if is_closed else "status 403"
    host = urllib.parse.urlsplit(served.url).netloc
    assert f"{host}: HTTP proxy: {reason}" in caught.value.message
    assert not served.service.counts
