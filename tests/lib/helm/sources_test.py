"""Sources of charts and the cache: pins, digests, versions, and what goes wrong."""

import collections
import contextlib
import hashlib
import http.server
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping

import pytest

from lib.helm import archive, cache, directory, errors, model, oci_registry, sources
from lib.helm import versions as chart_versions


@contextlib.contextmanager
def serving(
    paths: Mapping[str, bytes],
) -> Iterator[tuple[str, collections.Counter[str]]]:
    """Serve fixed paths on loopback; yield the address and the requests so far."""
    asked: collections.Counter[str] = collections.Counter()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the standard library names it
            asked[self.path] += 1
            body = paths.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def checkout(folder: pathlib.Path, name: str = "keystone", text: str = "a: 1") -> None:
    """Write a chart and the library chart that it depends on, as in a checkout."""
    for chart, depends in (("helm-toolkit", ""), (name, "helm-toolkit")):
        (folder / chart / "templates").mkdir(parents=True, exist_ok=True)
        lines = [f"name: {chart}", "version: 2026.1.0", "apiVersion: v2"]
        if depends:
            lines += [
                "dependencies:",
                f"- {{name: {depends}, repository: 'file://../{depends}',"
                " version: '>= 0.1.0'}",
            ]
        (folder / chart / "Chart.yaml").write_text("\n".join(lines))
        (folder / chart / "values.yaml").write_text(text)


@pytest.fixture()
def packed(tmp_path: pathlib.Path) -> bytes:
    checkout(tmp_path / "made")
    return directory.pack(tmp_path / "made" / "keystone", "keystone")


def index(version: str = "2026.1.0", url: str = "keystone.tgz") -> bytes:
    entry = {"version": version, "urls": [url]}
    return json.dumps({"apiVersion": "v1", "entries": {"keystone": [entry]}}).encode()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def pin(version: str = "2026.1.0", digest: str | None = None) -> model.Pin:
    return model.Pin("keystone", version, digest)


def test_a_repository_is_read_once(packed: bytes, tmp_path: pathlib.Path) -> None:
    charts = cache.Charts(tmp_path / "cache")
    with serving({"/index.yaml": index(), "/keystone.tgz": packed}) as (url, asked):
        assert charts.newest(url, "keystone") == "2026.1.0"
        chart = charts.get(url, pin())
        again = charts.get(url, pin(digest=chart.digest))
    assert chart == again
    assert chart.digest == digest(packed)
    assert chart.path.read_bytes() == packed
    assert asked == {"/index.yaml": 1, "/keystone.tgz": 1}


def test_a_changed_digest_is_refused(packed: bytes, tmp_path: pathlib.Path) -> None:
    charts = cache.Charts(tmp_path / "cache")
    pinned = f"sha256:{'0' * 64}"
    with (
        serving({"/index.yaml": index(), "/keystone.tgz": packed}) as (url, _),
        pytest.raises(errors.DigestMismatch, match=f"must be the pinned {pinned}"),
    ):
        charts.get(url, pin(digest=pinned))
    assert not list((tmp_path / "cache").glob("*")), "a refused chart was kept"


@pytest.mark.parametrize(
    ("paths", "kind", "text"),
    [
        ({}, errors.SourceUnreachable, "HTTP status 404"),
        ({"/index.yaml": b"{"}, errors.SourceInvalid, "no index of charts"),
        ({"/index.yaml": b"entries: 3"}, errors.SourceInvalid, "no index of charts"),
        ({"/index.yaml": b"entries: {}"}, errors.ChartNotFound, "chart keystone"),
        ({"/index.yaml": index("2025.1.0")}, errors.ChartNotFound, "2025.1.0"),
        ({"/index.yaml": index()}, errors.SourceUnreachable, "keystone.tgz"),
        (
            {"/index.yaml": index(url="file:///etc/passwd")},
            errors.SourceInvalid,
            "http",
        ),
        (
            {"/index.yaml": index(), "/keystone.tgz": b"junk"},
            errors.SourceInvalid,
            "archive",
        ),
    ],
)
def test_what_a_repository_gets_wrong(
    paths: Mapping[str, bytes],
    kind: type[errors.HelmError],
    text: str,
    tmp_path: pathlib.Path,
) -> None:
    with serving(paths) as (url, _), pytest.raises(kind, match=text):
        cache.Charts(tmp_path).get(url, pin())


def test_nobody_listens(tmp_path: pathlib.Path) -> None:
    with serving({}) as (url, _):
        pass
    with pytest.raises(errors.SourceUnreachable, match="cannot connect"):
        cache.Charts(tmp_path).get(url, pin())


def test_a_registry_is_read(packed: bytes, tmp_path: pathlib.Path) -> None:
    layer = {"mediaType": oci_registry.LAYER, "digest": digest(packed)}
    repository = "/v2/charts/keystone"
    paths = {
        f"{repository}/tags/list": b'{"tags": ["2026.1.0_g1", "2025.1.0"]}',
        f"{repository}/manifests/2026.1.0_g1": json.dumps({"layers": [layer]}).encode(),
        f"{repository}/blobs/{digest(packed)}": packed,
    }
    charts = cache.Charts(tmp_path / "cache")
    with serving(paths) as (url, _):
        source = f"oci://{url.removeprefix('http://')}/charts"
        assert charts.newest(source, "keystone") == "2026.1.0+g1"
        chart = charts.get(source, pin("2026.1.0+g1"))
        with pytest.raises(errors.ChartNotFound, match=r"such as 2026\.1\.0\+g1"):
            charts.get(source, pin("2026.2.0"))
    assert chart.path.read_bytes() == packed


def test_a_folder_is_packed_with_what_a_chart_depends_on(
    tmp_path: pathlib.Path,
) -> None:
    checkout(tmp_path / "charts")
    charts = cache.Charts(tmp_path / "cache")
    source = (tmp_path / "charts").as_uri()
    first = charts.get(source, pin())
    content = first.path.read_bytes()
    assert archive.member(content, "Chart.yaml")
    assert b"name: keystone" in (archive.member(content, "Chart.yaml") or b"")
    names = archive.names(content)
    assert "keystone/charts/helm-toolkit/Chart.yaml" in names
    again = cache.Charts(tmp_path / "other").get(str(tmp_path / "charts"), pin())
    assert again.digest == first.digest, "equal content must give an equal digest"
    checkout(tmp_path / "charts", text="a: 2")
    changed = cache.Charts(tmp_path / "third").get(source, pin())
    assert changed.digest != first.digest


def test_archives_in_a_folder(packed: bytes, tmp_path: pathlib.Path) -> None:
    (tmp_path / "keystone-2026.1.0.tgz").write_bytes(packed)
    chart = cache.Charts(tmp_path / "cache").get(str(tmp_path), pin())
    assert chart.digest == digest(packed)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "relative/folder",
        "ftp://host/x",
        "http://",
        "file://host/share",
        "https://user:pa55word@host/charts",
    ],
)
def test_malformed_addresses(url: str) -> None:
    with pytest.raises(errors.SourceInvalid) as caught:
        sources.open_source(url)
    assert "pa55word" not in str(caught.value)


def test_a_missing_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.SourceUnreachable, match="not found"):
        cache.Charts(tmp_path).get(str(tmp_path / "none"), pin())


def test_a_malformed_pin(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.SourceInvalid, match="64 hex digits"):
        cache.Charts(tmp_path).get(str(tmp_path), pin(digest="sha256:../../etc"))


@pytest.mark.parametrize(
    ("offered", "newest"),
    [
        (("2025.2.0", "2026.1.0", "2026.1.0-rc.1"), "2026.1.0"),
        (("2026.1.9+a", "2026.1.10+b"), "2026.1.10+b"),
        (("2026.1.0-rc.1", "latest"), None),
    ],
)
def test_the_newest_version(offered: tuple[str, ...], newest: str | None) -> None:
    assert chart_versions.newest(offered) == newest
