"""Accounts and CA certificates of private sources of charts."""

import base64
import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from lib.helm import (
    cache,
    errors,
    model,
    policy,
    source_access,
    sources,
)
from lib.helm.source_access import SourceAccess
from tests.harness.osdpl import private_registry

HOST = "charts.example.com"
PAIR = ("robot", "pa55:word")
AUTH = base64.b64encode(":".join(PAIR).encode()).decode()


def write(folder: pathlib.Path, **auths: dict[str, str]) -> SourceAccess:
    """Write accounts as a mounted Secret has them."""
    text = json.dumps({"auths": auths})
    (folder / source_access.ACCOUNTS).write_text(text)
    return SourceAccess(folder)


@pytest.mark.parametrize(
    ("host", "account", "url", "expected"),
    [
        pytest.param(HOST, {"auth": AUTH}, f"https://{HOST}/x", PAIR, id="its host"),
        pytest.param(
            f"https://{HOST}/v1/", {"auth": AUTH}, f"https://{HOST}", PAIR, id="a URL"
        ),
        pytest.param(
            HOST,
            {"username": "robot", "password": "pa55:word"},
            f"https://{HOST.upper()}/x",
            PAIR,
            id="user and password",
        ),
        pytest.param(HOST, {"auth": AUTH}, f"http://{HOST}/x", None, id="without TLS"),
        pytest.param(
            HOST, {"auth": AUTH}, "https://example.com/x", None, id="another host"
        ),
        pytest.param(
            HOST, {"auth": AUTH}, f"https://{HOST}:8443/x", None, id="another port"
        ),
        pytest.param(HOST, {"auth": "?"}, f"https://{HOST}/x", None, id="not base64"),
        pytest.param(HOST, {}, f"https://{HOST}/x", None, id="without an account"),
    ],
)
def test_an_account_is_sent_to_its_host_only(
    tmp_path: pathlib.Path,
    host: str,
    account: dict[str, str],
    url: str,
    expected: tuple[str, str] | None,
) -> None:
    assert write(tmp_path, **{host: account}).account(url) == expected


def test_without_a_folder_sources_are_read_anonymously(tmp_path: pathlib.Path) -> None:
    for access in (SourceAccess(), SourceAccess(tmp_path)):
        assert access.account(f"https://{HOST}") is None
        assert access.authority() is None


def nothing(path: str) -> tuple[int, Mapping[str, str], bytes]:
    del path
    return 404, {}, b""


@contextlib.contextmanager
def serving(
    folder: pathlib.Path, scheme: str, content: private_registry.Content = nothing
) -> Iterator[tuple[str, list[str]]]:
    """Serve for PAIR only; the authority is in the folder."""
    _, file = private_registry.write_certificate(folder)
    with private_registry.serving(file, dict([PAIR]), content, scheme) as served:
        yield served


def test_a_private_repository_gets_the_account(tmp_path: pathlib.Path) -> None:
    with serving(tmp_path, "Basic") as (host, sent):
        access = write(tmp_path, **{host: {"auth": AUTH}})
        opened = sources.open_source(f"https://{host}/x", policy.TRUSTED, access)
        with pytest.raises(errors.SourceUnreachable, match="404") as caught:
            opened.newest("keystone")
    assert sent == ["/x/index.yaml Basic"]
    assert "pa55" not in str(caught.value)


def test_a_certificate_of_another_authority_is_refused(tmp_path: pathlib.Path) -> None:
    with serving(tmp_path, "Basic") as (host, sent):
        charts = cache.Charts(tmp_path / "cache")
        with pytest.raises(errors.SourceUnreachable, match="certificate"):
            charts.get(f"https://{host}/x", model.Pin("keystone", "1.0.0", None))
    assert sent == []


def test_other_authorities_are_trusted_beside_the_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Private and public sources in one cloud."""
    own = tmp_path / "own"
    own.mkdir()
    private_registry.write_certificate(own)
    with serving(tmp_path, "Basic") as (host, sent):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.crt"))
        access = write(own, **{host: {"auth": AUTH}})
        opened = sources.open_source(f"https://{host}/x", policy.TRUSTED, access)
        with pytest.raises(errors.SourceUnreachable, match="404"):
            opened.newest("keystone")
    assert sent == ["/x/index.yaml Basic"]


@pytest.mark.parametrize("text", ["", "no certificate"], ids=repr)
def test_a_malformed_authority_is_named(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / source_access.AUTHORITY).write_text(text)
    opened = sources.open_source(
        f"https://{private_registry.HOST}:9/x", policy.TRUSTED, SourceAccess(tmp_path)
    )
    with pytest.raises(errors.SourceInvalid, match=r"ca\.crt"):
        opened.newest("keystone")


LIST = "/v2/charts/keystone/tags/list"


def tags(path: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return the list of tags of one chart."""
    is_list = path == LIST
    return (200, {}, b'{"tags": ["2026.1.0"]}') if is_list else nothing(path)


@pytest.mark.parametrize(
    ("scheme", "sent_then"),
    [
        pytest.param("Basic", [f"{LIST} Basic"], id="Basic"),
        pytest.param("BASIC", [f"{LIST} Basic"], id="Basic in capitals"),
        pytest.param("Bearer", ["/token Basic", f"{LIST} Bearer"], id="a token"),
    ],
)
def test_a_private_registry_gets_the_account(
    tmp_path: pathlib.Path, scheme: str, sent_then: list[str]
) -> None:
    """The realm of the token service has a query of its own."""
    with serving(tmp_path, scheme, tags) as (host, sent):
        access = write(tmp_path, **{f"{host}/charts": {"auth": AUTH}})
        opened = sources.open_source(f"oci://{host}/charts", policy.TRUSTED, access)
        assert opened.newest("keystone") == "2026.1.0"
    assert sent == [LIST, *sent_then]


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
@pytest.mark.parametrize(
    ("account", "who"),
    [
        pytest.param({"auth": AUTH[:-4] + "AAAA"}, "the account robot", id="wrong"),
        pytest.param({}, "anonymous reading", id="none"),
    ],
)
def test_a_registry_that_refuses(
    tmp_path: pathlib.Path, scheme: str, account: dict[str, str], who: str
) -> None:
    with serving(tmp_path, scheme, tags) as (host, _):
        access = write(tmp_path, **{host: account})
        opened = sources.open_source(f"oci://{host}/charts", policy.TRUSTED, access)
        with pytest.raises(errors.SourceUnreachable, match=f"refuses {who}") as caught:
            opened.newest("keystone")
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    "token", [b"", b"[]", b'"t"', b'{"token": 1}', b"{}", b"\xff"], ids=repr
)
def test_a_token_service_that_answers_nonsense(
    tmp_path: pathlib.Path, token: bytes
) -> None:
    _, file = private_registry.write_certificate(tmp_path)
    with private_registry.serving(file, dict([PAIR]), tags, issued=token) as served:
        host, sent = served
        access = write(tmp_path, **{host: {"auth": AUTH}})
        opened = sources.open_source(f"oci://{host}/charts", policy.TRUSTED, access)
        with pytest.raises(errors.SourceUnreachable, match="refuses the account robot"):
            opened.newest("keystone")
    assert sent[:2] == [LIST, "/token Basic"]


def test_the_account_with_the_longest_path_counts(tmp_path: pathlib.Path) -> None:
    other = base64.b64encode(b"other:secret").decode()
    rows = {HOST: {"auth": other}, f"{HOST}/a/b": {"auth": AUTH}, f"{HOST}/a": {}}
    access = write(tmp_path, **rows)
    assert access.account(f"https://{HOST}/v2/a/b/keystone/tags/list") == PAIR
    assert access.account(f"https://{HOST}/v2/a/bc/tags/list") is None
    assert access.account(f"https://{HOST}/v2/x/tags/list") == ("other", "secret")


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("https://index.docker.io/v1/", "https://registry-1.docker.io/v2/x/tags/list"),
        ("docker.io", "https://registry-1.docker.io/v2/x/tags/list"),
        (f"{HOST}:443", f"https://{HOST}/x"),
        (HOST, f"https://{HOST}:443/x"),
    ],
)
def test_other_names_of_a_host(tmp_path: pathlib.Path, key: str, url: str) -> None:
    assert write(tmp_path, **{key: {"auth": AUTH}}).account(url) == PAIR


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"auths": {"x": "y"}}', '{"auths": 1}'], ids=repr
)
def test_malformed_accounts_are_named(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / source_access.ACCOUNTS).write_text(text)
    with pytest.raises(errors.SourceInvalid, match="dockerconfigjson"):
        SourceAccess(tmp_path).account(f"https://{HOST}/x")


def test_an_account_of_netrc_does_not_replace_the_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library of HTTP would send it, also in the place of a token."""
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine {private_registry.HOST} login x password y\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with serving(tmp_path, "Bearer", tags) as (host, sent):
        access = write(tmp_path, **{host: {"auth": AUTH}})
        opened = sources.open_source(f"oci://{host}/charts", policy.TRUSTED, access)
        assert opened.newest("keystone") == "2026.1.0"
    assert sent == [LIST, "/token Basic", f"{LIST} Bearer"]
