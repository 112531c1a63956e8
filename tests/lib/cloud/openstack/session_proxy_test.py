"""OpenStack is reached through the proxy that the umbrella chart names."""

import urllib.parse
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import lists
from lib.lab.charts import charts
from tests.harness import http_proxy

SNAPSHOT = charts.of(charts.UMBRELLA)["one-host"]


class StandIn(Protocol):
    url: str

    def paths(self) -> list[str]: ...


MakeClient = Callable[..., client.Client]


@pytest.fixture()
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[http_proxy.ForwardProxy]:
    with http_proxy.used(monkeypatch, SNAPSHOT, "openstack-ccm") as proxy:
        yield proxy


@pytest.mark.parametrize(("host", "is_proxied"), http_proxy.HOSTS.items())
def test_token_versions_and_lists_take_the_same_way(
    stand_in: StandIn,
    make_client: MakeClient,
    proxy: http_proxy.ForwardProxy,
    host: str,
    is_proxied: bool,
) -> None:
    """Every call that arrives at the cloud has passed the proxy, or none has."""
    port = urllib.parse.urlsplit(stand_in.url).port
    stand_in.url = f"http://{host}:{port}"
    api = make_client()
    assert lists.servers(api, api.now() + 60) == ()
    assert stand_in.paths() == ["auth/tokens", "/compute/v2.1", "servers/detail"]
    methods = ("POST", "GET", "GET") if is_proxied else ()
    print(f"{host:40} {len(proxy.requests)} of 3 calls by the proxy")
    assert proxy.requests == [(method, host) for method in methods]


def test_a_proxy_that_is_down_makes_the_cloud_unavailable(
    stand_in: StandIn,
    make_client: MakeClient,
    proxy: http_proxy.ForwardProxy,
) -> None:
    """There is no second attempt without it."""
    port = urllib.parse.urlsplit(stand_in.url).port
    stand_in.url = f"http://cloud.example:{port}"
    proxy.close()
    api = make_client()
    with pytest.raises(errors.Unavailable) as raised:
        lists.servers(api, api.now() + 60)
    print(raised.value)
    assert stand_in.paths() == []
