"""Credentials from OS_* variables, which Deckhouse's discoverer has.

Source: deckhouse, cloud-data-discoverer of OpenStack; application credentials are ours,
named as openstacksdk names them.
"""

from collections.abc import Mapping

from lib.cloud.openstack.config import section_reader
from lib.cloud.openstack.config.settings import CloudConfError, Credentials
from lib.process import config

_FIELDS = {
    "OS_AUTH_URL": "auth_url",
    "OS_DOMAIN_NAME": "domain_name",
    "OS_TENANT_ID": "tenant_id",
    "OS_TENANT_NAME": "tenant_name",
    "OS_USERNAME": "username",
    "OS_PASSWORD": "password",
    "OS_REGION": "region",
    "OS_CACERT": "ca_file",
    "OS_APPLICATION_CREDENTIAL_ID": "application_credential_id",
    "OS_APPLICATION_CREDENTIAL_NAME": "application_credential_name",
    "OS_APPLICATION_CREDENTIAL_SECRET": "application_credential_secret",
}


def read(env: Mapping[str, str]) -> Credentials:
    """Read them; an empty variable counts as none.

    Raises:
        ConfigError: with all problems; no secret is shown.
    """
    values = {name: env.get(name, "") for name in _FIELDS}
    problems = [*_always(values)]
    if values["OS_APPLICATION_CREDENTIAL_SECRET"]:
        problems += _with_application(values)
    else:
        problems += _with_password(values)
    if problems:
        raise CloudConfError(tuple(problems))
    fields = {field: values[name] for name, field in _FIELDS.items()}
    return Credentials(**fields, tls_insecure=False)


def _always(values: Mapping[str, str]) -> list[str]:
    problems = []
    url = values["OS_AUTH_URL"]
    if not url.startswith(("http://", "https://")):
        expected = "the URL of Keystone, such as https://keystone.example:5000/v3"
        hidden = section_reader.may_hold_secret(url)
        text = config.rejected(url, expected, hidden)
        problems.append(f"OS_AUTH_URL: {text}")
    if not values["OS_REGION"]:
        problems.append("OS_REGION: not set: must be the name of a region")
    return problems


def _with_application(values: Mapping[str, str]) -> list[str]:
    if values["OS_APPLICATION_CREDENTIAL_ID"]:
        return []
    if not values["OS_APPLICATION_CREDENTIAL_NAME"]:
        return [
            "OS_APPLICATION_CREDENTIAL_ID: not set: must be set, or"
            " OS_APPLICATION_CREDENTIAL_NAME, with the secret"
        ]
    return [
        f"{name}: not set: must be set with OS_APPLICATION_CREDENTIAL_NAME"
        for name in ("OS_USERNAME", "OS_DOMAIN_NAME")
        if not values[name]
    ]


def _with_password(values: Mapping[str, str]) -> list[str]:
    needed = ("OS_USERNAME", "OS_PASSWORD", "OS_DOMAIN_NAME")
    problems = [
        f"{name}: not set: must be set, or an application credential"
        for name in needed
        if not values[name]
    ]
    tenants = [name for name in ("OS_TENANT_ID", "OS_TENANT_NAME") if values[name]]
    if len(tenants) != 1:
        problems.append(
            "OS_TENANT_ID: must not be set together with OS_TENANT_NAME"
            if tenants
            else "OS_TENANT_ID: not set: must be set, or OS_TENANT_NAME"
        )
    return problems
