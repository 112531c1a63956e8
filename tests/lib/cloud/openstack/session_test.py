"""Each way of authentication asks Keystone for what the reference asks it for."""

import pathlib
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.config.settings import Credentials
from lib.cloud.openstack.http import session

Json = dict[str, object]


class Call(Protocol):
    path: str
    headers: dict[str, str]
    body: Json


class StandIn(Protocol):
    url: str
    calls: list[Call]


LogIn = Callable[..., Json]


@pytest.fixture()
def log_in(stand_in: StandIn) -> LogIn:
    """Return a function that logs in and returns what Keystone was sent."""

    def ask(path: str = "/identity/v3", **values: str) -> Json:
        credentials = Credentials(auth_url=stand_in.url + path, **values)  # type: ignore[arg-type]  # texts only
        opened = session.open_session(credentials, 5.0, ("extra/1",))
        try:
            opened.get_token()
        finally:
            opened.session.close()
        (call,) = stand_in.calls
        assert call.path == "/identity/v3/auth/tokens"
        assert call.headers["user-agent"].startswith("extra/1 openstack-cloud-")
        body = call.body["auth"]
        assert isinstance(body, dict)
        return body

    return ask


def by_password(**user: object) -> Json:
    return {"methods": ["password"], "password": {"user": user}}


def test_user_by_name_with_the_common_domain_for_user_and_project(
    log_in: LogIn,
) -> None:
    """domain-name stands in for both domains when there is a project."""
    sent = log_in(username="u", password="p", domain_name="d", tenant_name="t")
    assert sent == {
        "identity": by_password(name="u", password="p", domain={"name": "d"}),
        "scope": {"project": {"name": "t", "domain": {"name": "d"}}},
    }


def test_own_domains_of_user_and_project_come_first(log_in: LogIn) -> None:
    """The more precise keys win over domain-id."""
    sent = log_in(
        username="u",
        password="p",
        domain_id="d",
        user_domain_id="ud",
        tenant_name="t",
        tenant_domain_name="td",
        tenant_domain_id="tdi",
    )
    assert sent == {
        "identity": by_password(name="u", password="p", domain={"id": "ud"}),
        "scope": {"project": {"name": "t", "domain": {"id": "tdi"}}},
    }


def test_a_project_by_id_needs_no_domain(log_in: LogIn) -> None:
    """tenant-id wins over tenant-name."""
    sent = log_in(user_id="u", password="p", tenant_id="t", tenant_name="x")
    assert sent == {
        "identity": by_password(id="u", password="p"),
        "scope": {"project": {"id": "t"}},
    }


def test_without_a_project_the_scope_is_the_domain(log_in: LogIn) -> None:
    """domain-id alone scopes to the domain."""
    sent = log_in(user_id="u", password="p", domain_id="d")
    assert sent["scope"] == {"domain": {"id": "d"}}


def test_an_application_credential_by_id_has_no_scope(log_in: LogIn) -> None:
    """It is bound to its project; a scope would be refused."""
    sent = log_in(
        application_credential_id="a",
        application_credential_secret="s",
        tenant_id="t",
        username="u",
    )
    assert sent == {
        "identity": {
            "methods": ["application_credential"],
            "application_credential": {"id": "a", "secret": "s"},
        }
    }


def test_an_application_credential_by_name_names_its_user(log_in: LogIn) -> None:
    """Names of credentials are the user's own."""
    sent = log_in(
        application_credential_name="a",
        application_credential_secret="s",
        username="u",
        domain_name="d",
    )
    assert sent["identity"] == {
        "methods": ["application_credential"],
        "application_credential": {
            "name": "a",
            "secret": "s",
            "user": {"name": "u", "domain": {"name": "d"}},
        },
    }


def test_a_token_wins_over_a_password(log_in: LogIn) -> None:
    """As in the reference."""
    sent = log_in(token="tok", username="u", password="p", tenant_id="t")
    assert sent == {
        "identity": {"methods": ["token"], "token": {"id": "tok"}},
        "scope": {"project": {"id": "t"}},
    }


def test_a_trust_uses_the_trustee_and_no_project(log_in: LogIn) -> None:
    """The trust is the scope; trustee-id and -password replace user and password."""
    sent = log_in(
        trust_id="tr",
        trustee_id="te",
        trustee_password="tp",
        user_id="u",
        password="p",
        tenant_id="t",
    )
    assert sent == {
        "identity": by_password(id="te", password="tp"),
        "scope": {"OS-TRUST:trust": {"id": "tr"}},
    }


@pytest.mark.parametrize(
    "path", ["/identity", "/identity/", "/identity/v3", "/identity/v3/"]
)
def test_the_url_may_name_the_version_or_not(log_in: LogIn, path: str) -> None:
    """Version 3 is used in any case, without asking; the fixture checks the path."""
    log_in(path, user_id="u", password="p", tenant_id="t")


def test_a_url_of_the_old_version_is_lifted_to_the_living_one(log_in: LogIn) -> None:
    """Version 2 of Keystone is gone for good."""
    log_in("/identity/v2.0", user_id="u", password="p", tenant_id="t")


def test_files_that_can_not_be_used_are_all_named_before_any_call(
    tmp_path: pathlib.Path,
) -> None:
    """CA, certificate and key are checked at once."""
    (tmp_path / "ca").write_text("not PEM")
    credentials = Credentials(
        auth_url="https://k.example/v3",
        ca_file=str(tmp_path / "ca"),
        cert_file=str(tmp_path / "absent"),
        key_file="/absent",
    )
    with pytest.raises(settings.CloudConfError) as raised:
        session.open_session(credentials, 5.0)
    assert [text.partition(": ")[0] for text in raised.value.problems] == [
        "[Global] ca-file",
        "[Global] cert-file",
        "[Global] key-file",
    ]


def test_tls_settings_reach_the_session(tmp_path: pathlib.Path) -> None:
    """A CA file replaces the system's; insecure checks nothing; a lone key is none."""
    pem = tmp_path / "ca"
    pem.write_text("-----BEGIN CERTIFICATE-----\n")
    credentials = Credentials(auth_url="https://k.example/v3", ca_file=str(pem))
    assert session.open_session(credentials, 5.0).verify == str(pem)
    insecure = Credentials(auth_url="https://k.example/v3", tls_insecure=True)
    assert session.open_session(insecure, 5.0).verify is False
    plain = Credentials(auth_url="https://k.example/v3", key_file=str(pem))
    opened = session.open_session(plain, 5.0)
    assert opened.verify is True
    assert opened.cert is None
    assert opened.timeout == 5.0


def test_the_pool_holds_a_connection_for_every_worker() -> None:
    """Neither scheme is limited to the library's ten."""
    opened = session.open_session(Credentials(auth_url="https://k.example"), 5.0)
    for scheme in ("http://", "https://"):
        adapter = opened.session.get_adapter(scheme)
        assert adapter._pool_maxsize >= 64  # type: ignore[attr-defined]  # no public way
        assert adapter.max_retries.total == 0  # type: ignore[attr-defined]  # not in its type
