"""A cloud that clouds.yaml describes: the lab's own, or an existing one."""

import os
import pathlib
import urllib.parse
from collections.abc import Mapping

import openstack.config
import openstack.connection

from lib.lab.openstack import cloud, tenant

TIMEOUT_S = 30.0
FILE_VARIABLE = "OS_CLIENT_CONFIG_FILE"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def connect(clouds_file: pathlib.Path | None, name: str) -> tenant.Tenant:
    """Authenticate to the cloud `name` of a clouds.yaml; of the usual one when None.

    Raises:
        LabError: there is no such cloud, or it rejects the credentials.
    """
    with cloud.sentences():
        files = None if clouds_file is None else [str(clouds_file)]
        loader = openstack.config.OpenStackConfig(
            config_files=files, load_envvars=files is None, app_name="mooring-lab"
        )
        region = loader.get_one(cloud=name, api_timeout=TIMEOUT_S)
        connection = openstack.connection.Connection(config=region)
        url = str(region.get_auth_args().get("auth_url", ""))
        if urllib.parse.urlsplit(url).hostname in LOOPBACK:
            # A proxy can't reach our loopback.
            connection.session.session.trust_env = False
        connection.authorize()
        return tenant.Tenant(connection)


def usual_file(env: Mapping[str, str] | None = None) -> str:
    """Return the clouds.yaml that the environment names, as a full path, or ""."""
    named = (os.environ if env is None else env).get(FILE_VARIABLE, "")
    return str(pathlib.Path(named).absolute()) if named else ""
