"""Connections to the lab's cloud, and projects of their own for those who want one."""

import contextlib
from collections.abc import Iterator

import keystoneauth1.exceptions
import openstack.connection
import openstack.exceptions
from openstack.identity.v3 import _proxy as identity_v3
from openstack.image.v2 import _proxy as image_v2

from lib.lab import errors, places
from lib.lab.openstack import accounts, layout

TIMEOUT_S = 120.0
"""Of one request: a lab on a busy machine is slow, but it answers."""
ROLES = ("member", "reader", "load-balancer_member")
"""What a plain user may do in a project."""


def connect(
    where: places.Places, account: accounts.Account = accounts.DEMO
) -> openstack.connection.Connection:
    """Open a connection; the user's own clouds, variables and proxies play no part.

    Nothing is asked of the cloud yet. Without the name of a cloud the SDK reads neither
    files nor variables.
    """
    connection = openstack.connection.Connection(
        auth={
            "auth_url": layout.of(where).url(layout.KEYSTONE, "/v3"),
            "username": account.user,
            "password": layout.PASSWORD,
            "project_name": account.project,
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name=layout.REGION,
        api_timeout=TIMEOUT_S,
        app_name="mooring-lab",
    )
    connection.session.session.trust_env = False
    return connection


def project(where: places.Places, name: str) -> accounts.Account:
    """Have a project with a user of its own, and return the account.

    What one project does is not seen by another. Repeating it does no harm.

    Raises:
        LabError: the cloud does not answer.
    """
    account = accounts.own(name)
    with sentences(), contextlib.closing(connect(where, accounts.ADMIN)) as admin:
        identity = identity_of(admin)
        project = identity.find_project(name) or identity.create_project(
            name=name, domain_id="default"
        )
        user = identity.find_user(name) or identity.create_user(
            name=name,
            password=layout.PASSWORD,
            domain_id="default",
            default_project_id=project.id,
        )
        roles = {role.name: role for role in identity.roles()}
        for role in ROLES:
            identity.assign_project_role_to_user(project, user, roles[role])
    return account


def identity_of(
    connection: openstack.connection.Connection,
) -> identity_v3.Proxy:
    """Return the identity API, which is v3 everywhere by now.

    Raises:
        LabError: the cloud has an older one only.
    """
    if not isinstance(connection.identity, identity_v3.Proxy):
        raise errors.LabError("the cloud has no Identity API v3")
    return connection.identity


def images_of(connection: openstack.connection.Connection) -> image_v2.Proxy:
    """Return the image API, which is v2 everywhere by now.

    Raises:
        LabError: the cloud has an older one only.
    """
    if not isinstance(connection.image, image_v2.Proxy):
        raise errors.LabError("the cloud has no Image API v2")
    return connection.image


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Turn the SDK's errors into the lab's one."""
    try:
        yield
    except openstack.exceptions.HttpException as error:
        details = error.details or error.message
        raise errors.LabError(f"the cloud refused: {details}") from error
    except (
        openstack.exceptions.SDKException,
        keystoneauth1.exceptions.ClientException,
    ) as error:
        raise errors.LabError(f"the cloud does not answer: {error}") from error
