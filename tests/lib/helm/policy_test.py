"""Sources that a policy allows: by address, behind names and behind redirects."""

import contextlib
import http.server
import pathlib
import socket
import threading
from collections.abc import Iterator

import pytest

from lib.helm import cache, errors, model, policy, sources
from lib.helm.policy import Policy

REPOSITORY = "https://charts.example.com/openstack"
LOCAL = "loopback or link-local"
NOT_LISTED = "must be one of the allowed sources"


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "oci://169.254.0.1/x",
        "https://[fe80::1]/x",
        "https://[fe80::1%25eth0]/x",
        "http://127.0.0.1:8080/charts",
        "http://127.8.9.10/charts",
        "http://localhost/charts",
        "http://LOCALHOST:10290/charts",
        "http://charts.localhost/",
        "oci://[::1]:5000/charts",
        "http://[::ffff:127.0.0.1]/charts",
        "http://[::ffff:169.254.169.254]/latest",
        "http://[fd00:ec2::254]/latest",
        "http://0.0.0.0/charts",
        "http://[::]/charts",
        "http://localhost./charts",
        "http://[64:ff9b::169.254.169.254]/latest",
    ],
)
def test_a_local_address_is_no_source(url: str) -> None:
    """A metadata service of a cloud answers there, with credentials of the Node."""
    with pytest.raises(errors.SourceInvalid, match=LOCAL):
        sources.open_source(url, Policy())


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(REPOSITORY, id="the source itself"),
        pytest.param(f"{REPOSITORY}/", id="with a slash"),
        pytest.param(f"{REPOSITORY}/stable", id="below it"),
        pytest.param("https://CHARTS.example.com/openstack", id="in capitals"),
        pytest.param("oci://registry.example.com/charts", id="the second one"),
        pytest.param("/opt/charts/stable", id="a folder below one"),
        pytest.param("file:///opt/charts", id="a folder as a URL"),
        pytest.param("http://127.0.0.1:8080/charts", id="a listed loopback address"),
    ],
)
def test_an_allowed_source_is_opened(url: str) -> None:
    others = ("oci://registry.example.com", "/opt/charts", "http://127.0.0.1:8080")
    sources.open_source(url, Policy((REPOSITORY, *others)))


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://charts.example.com/other", id="another path"),
        pytest.param("https://charts.example.com/openstack2", id="a longer name"),
        pytest.param("https://charts.example.com", id="above it"),
        pytest.param("http://charts.example.com/openstack", id="without TLS"),
        pytest.param("https://charts.example.com:8443/openstack", id="another port"),
        pytest.param(
            "https://charts.example.com.evil.org/openstack", id="another host"
        ),
        pytest.param(f"{REPOSITORY}/../evil", id="a path upwards"),
        pytest.param(f"{REPOSITORY}/%2e%2e/evil", id="a path upwards in hex"),
        pytest.param(f"{REPOSITORY}/?x=1", id="a query"),
        pytest.param("oci://charts.example.com/openstack", id="a registry"),
        pytest.param("/openstack", id="a folder"),
        pytest.param("http://127.0.0.1/openstack", id="a loopback address"),
    ],
)
def test_a_source_that_is_not_listed_is_refused(url: str) -> None:
    with pytest.raises(errors.SourceInvalid, match=NOT_LISTED) as caught:
        sources.open_source(url, Policy((REPOSITORY,)))
    assert REPOSITORY in str(caught.value)


@contextlib.contextmanager
def serving(location: str = "") -> Iterator[tuple[int, list[str]]]:
    """Serve redirects, or nothing, on loopback; yield the port and the requests."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the standard library names it
            asked.append(self.path)
            self.send_response(302 if location else 404)
            self.send_header("Location", location)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(folder: pathlib.Path, url: str, allowed: Policy) -> str:
    """Return the error with which a chart of a source is refused."""
    charts = cache.Charts(folder, sources.opener(allowed))
    with pytest.raises(errors.SourceError) as caught:
        charts.get(url, model.Pin("keystone", "2026.1.0", None))
    return str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "oci", "https"])
def test_a_name_that_leads_to_loopback_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Nothing is sent to it: the address of the connection counts, not a look-up."""
    real = socket.getaddrinfo

    def resolve(host: str, *rest: object, **more: object) -> object:
        return real("127.0.0.1", *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with serving() as (port, asked):
        url = f"{scheme}://charts.example.com:{port}/charts"
        text = fetch(tmp_path, url, Policy())
    assert "leads to the loopback or link-local address 127.0.0.1" in text
    assert asked == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://localhost:1/index.yaml",
        "https://[::ffff:169.254.169.254]/",
    ],
)
def test_a_redirect_to_a_local_address_is_not_followed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """The first hop is taken for a remote one."""
    real = policy.is_local
    monkeypatch.setattr(policy, "is_local", lambda x: x != "127.0.0.1" and real(x))
    with serving(location) as (port, asked):
        text = fetch(tmp_path, f"http://127.0.0.1:{port}/charts", Policy())
    assert len(asked) == 1
    assert LOCAL in text


def test_an_allowed_loopback_source_is_read(tmp_path: pathlib.Path) -> None:
    with serving() as (port, asked):
        url = f"http://127.0.0.1:{port}/charts"
        text = fetch(tmp_path, url, Policy((url,)))
    assert "HTTP status 404" in text
    assert asked == ["/charts/index.yaml"]


def test_a_tool_reads_what_its_user_names(tmp_path: pathlib.Path) -> None:
    with serving() as (port, asked):
        charts = cache.Charts(tmp_path)
        with pytest.raises(errors.SourceError, match="HTTP status 404"):
            charts.get(f"http://localhost:{port}", model.Pin("x", "1.0.0", None))
    assert asked == ["/index.yaml"]
