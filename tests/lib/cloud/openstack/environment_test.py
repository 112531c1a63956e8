"""OS_* variables: which ways to log in there are, and what is told of a wrong one."""

import pytest

from lib.cloud.openstack.config import environment, settings

PASSWORD = {
    "OS_AUTH_URL": "https://keystone:5000/v3",
    "OS_DOMAIN_NAME": "Default",
    "OS_USERNAME": "me",
    "OS_PASSWORD": "hunter2",
    "OS_TENANT_NAME": "mine",
    "OS_REGION": "RegionOne",
}
APPLICATION = {
    "OS_AUTH_URL": "https://keystone:5000/v3",
    "OS_REGION": "RegionOne",
    "OS_APPLICATION_CREDENTIAL_ID": "id-1",
    "OS_APPLICATION_CREDENTIAL_SECRET": "hunter2",
}
NAMED = {
    **{k: v for k, v in APPLICATION.items() if not k.endswith("_ID")},
    "OS_APPLICATION_CREDENTIAL_NAME": "robot",
    "OS_USERNAME": "me",
    "OS_DOMAIN_NAME": "Default",
}


def without(env: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in env.items() if key != name}


def test_a_password() -> None:
    credentials = environment.read({**PASSWORD, "OS_CACERT": "/etc/config/ca.crt"})
    assert (credentials.username, credentials.tenant_name) == ("me", "mine")
    assert (credentials.domain_name, credentials.region) == ("Default", "RegionOne")
    assert credentials.ca_file == "/etc/config/ca.crt"
    assert not credentials.tls_insecure


@pytest.mark.parametrize("env", [APPLICATION, NAMED], ids=["by id", "by name"])
def test_an_application_credential(env: dict[str, str]) -> None:
    assert environment.read(env).application_credential_secret == "hunter2"


BAD = [
    (without(PASSWORD, "OS_AUTH_URL"), "OS_AUTH_URL: not set: must be the URL"),
    ({**PASSWORD, "OS_AUTH_URL": "keystone"}, 'OS_AUTH_URL: invalid value "keystone"'),
    (without(PASSWORD, "OS_REGION"), "OS_REGION: not set"),
    (without(PASSWORD, "OS_USERNAME"), "OS_USERNAME: not set"),
    (without(PASSWORD, "OS_PASSWORD"), "OS_PASSWORD: not set"),
    (without(PASSWORD, "OS_DOMAIN_NAME"), "OS_DOMAIN_NAME: not set"),
    (without(PASSWORD, "OS_TENANT_NAME"), "OS_TENANT_ID: not set: must be set, or"),
    (
        {**PASSWORD, "OS_TENANT_ID": "1"},
        "OS_TENANT_ID: must not be set together with OS_TENANT_NAME",
    ),
    (
        without(APPLICATION, "OS_APPLICATION_CREDENTIAL_ID"),
        "OS_APPLICATION_CREDENTIAL_ID: not set",
    ),
    (without(NAMED, "OS_USERNAME"), "OS_USERNAME: not set"),
    # The reference reads no variable of this name, though others do.
    ({**without(PASSWORD, "OS_REGION"), "OS_REGION_NAME": "R"}, "OS_REGION: not set"),
]


@pytest.mark.parametrize(
    ("env", "message"), BAD, ids=[f"{r[1]} {n}" for n, r in enumerate(BAD)]
)
def test_a_problem_names_the_variable_and_no_secret(
    env: dict[str, str], message: str
) -> None:
    with pytest.raises(settings.CloudConfError) as caught:
        environment.read(env)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(settings.CloudConfError) as caught:
        environment.read({})
    assert len(caught.value.problems) == 6
