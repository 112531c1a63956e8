"""The cloud that a layout's inputs name, as `mooring layouts` reads it."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from mooring.commands import edge

if TYPE_CHECKING:
    from lib.cloud.openstack.layouts import cloud
    from lib.layouts.openstack import blocks

_VARIABLES = {
    "authURL": "OS_AUTH_URL",
    "domainName": "OS_DOMAIN_NAME",
    "tenantID": "OS_TENANT_ID",
    "tenantName": "OS_TENANT_NAME",
    "username": "OS_USERNAME",
    "password": "OS_PASSWORD",
    "region": "OS_REGION",
}
CALL_TIMEOUT_S = 30.0


def with_password(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration with the environment's password, if it has none itself."""
    provider, password = document.get("provider"), os.environ.get("OS_PASSWORD")
    if not password or not isinstance(provider, dict):
        return document
    return {**document, "provider": {"password": password, **provider}}


@contextlib.contextmanager
def opened(provider: object) -> Iterator["cloud.OpenStackLayouts"]:
    """Yield the project of a provider block; its certificate is written to a file.

    A password that it lacks is that of the environment.

    Raises:
        ClickException: it cannot be used; the cloud does not answer, or refuses.
    """
    from lib.cloud import errors
    from lib.cloud.openstack.config import environment, settings
    from lib.cloud.openstack.http import client, session
    from lib.cloud.openstack.layouts import cloud
    from lib.cloud.support import calls

    block: Mapping[str, Any] = provider if isinstance(provider, dict) else {}
    variables = {
        name: str(block[field])
        for field, name in _VARIABLES.items()
        if block.get(field)
    }
    variables.setdefault("OS_PASSWORD", os.environ.get("OS_PASSWORD", ""))
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as certificate:
        if block.get("caCert"):
            certificate.write(str(block["caCert"]))
            certificate.flush()
            variables["OS_CACERT"] = certificate.name
        try:
            credentials = environment.read(variables)
            opened = session.open_session(
                credentials, CALL_TIMEOUT_S, ("mooring-layouts",)
            )
            where = client.Where(credentials.region, credentials.endpoint_type)
            api = client.Client(opened, where, calls.ignore)
            yield cloud.OpenStackLayouts(api)
        except settings.CloudConfError as error:
            raise click.ClickException(f"provider: {error}") from error
        except errors.CloudError as error:
            raise click.ClickException(str(error)) from error


def recovery(document: Any) -> "blocks.Recovery":
    """Return the blocks for a state, or for a plan: those of its cloud.

    Raises:
        ValueError: the document is neither.
    """
    from lib.layouts.openstack import recover, states

    if not isinstance(document, dict):
        raise ValueError(_NEITHER)
    if states.is_state(document):
        return states.of_state(document)
    if "resource_changes" not in document:
        raise ValueError(_NEITHER)
    variables = document.get("variables") or {}
    configuration = (variables.get("providerClusterConfiguration") or {}).get("value")
    if not isinstance(configuration, dict):
        raise ValueError("the plan has no variable providerClusterConfiguration")
    with edge.plainly(), opened(configuration.get("provider")) as project:
        objects = project.of_project()
    return recover.of_plan(document, objects)


_NEITHER = (
    "the document is neither a plan, as `tofu show -json PLAN` prints it, nor a state"
)
