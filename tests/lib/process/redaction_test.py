"""What counts as a secret."""

import pytest

from lib.process import redaction


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "admin-password",
        "bearerToken",
        "X-Auth-Token",
        "Authorization",
        "client_secret",
        "credentials",
        "private_key",
        "privateKey",
        "userData",
        "cookie",
        "secrets",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert redaction.is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "secret_name",
        "secret-namespace",
        "token_file",
        "password_path",
        "node",
        "key",
        "event",
        "author",
        "credential_id",
        "token_ttl_s",
    ],
)
def test_names_of_what_only_leads_to_secrets_are_harmless(name: str) -> None:
    assert not redaction.is_secret(name)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer hunter2.abc-d", "Authorization: Bearer [redacted]"),
        ("https://me:hunter2@cloud:5000/v3", "https://me:[redacted]@cloud:5000/v3"),
        ("X-Auth-Token: hunter2", "X-Auth-Token: [redacted]"),
        ("password: not-set", "password: [redacted]"),
        ("password: notset", "password: [redacted]"),
        ("password: mustang", "password: [redacted]"),
        ('{"password": "hunter2", "a": 1}', '{"password": [redacted], "a": 1}'),
        ("POST ?client_secret=hunter2&a=1", "POST ?client_secret=[redacted]&a=1"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_plain_secrets_inside_texts_are_taken_out(text: str, kept: str) -> None:
    assert redaction.scrub(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "a basic test",
        "https://cloud:5000/v3",
        "list servers: time-out",
        "10.0.0.1:22",
        "node a@b",
        "the password was wrong",
        "[Global] password: not set: must be set",
        "clouds.yaml: password: must not be set together with token",
        "password: invalid value [redacted]: must be text",
        "spec.users.password: unsupported value [redacted]: must be one of a, b",
        "client_secret: unknown key: did you mean client-id?",
        "X-Auth-Token: no such file",
        "password: permission denied",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redaction.scrub(text) == text
