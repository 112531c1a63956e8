"""The command line client `openstack`, for the cloud of a lab."""

import os
import pathlib
import shutil
from collections.abc import Mapping

from lib.lab import errors, places
from lib.lab.openstack import accounts, install
from lib.lab.run import progress

NAME = "openstack"
_NO_PROXY = ("no_proxy", "NO_PROXY")
_LOOPBACK = "127.0.0.1"
_CLOUD = "OS_CLOUD"


def own(
    where: places.Places, shown: progress.Progress, variables: Mapping[str, str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return command and whole environment of the client of the lab's own cloud.

    It is installed by the first call. variables: those that select the cloud; OS_CLOUD
    of the user selects another account of the lab.

    Raises:
        LabError: it could not be installed.
    """
    installed = install.locate(where)
    folder = install.client(where, installed, shown)
    chosen = chosen_account(variables, os.environ)
    env = {**install.clean(os.environ), **chosen, "PYTHONPATH": str(folder)}
    for name in _NO_PROXY:  # a proxy cannot reach this machine's loopback address
        env[name] = ",".join(filter(None, (env.get(name), _LOOPBACK)))
    words = (str(installed.python), "-m", "openstackclient.shell")
    return words, env


def chosen_account(
    variables: Mapping[str, str], env: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the variables, with OS_CLOUD of the user if it is one of the lab's.

    Any other value names a cloud that the lab's clouds.yaml does not have.
    """
    name = env.get(_CLOUD, "")
    is_own = name in (accounts.DEMO.cloud, accounts.ADMIN.cloud)
    return {**variables, _CLOUD: name} if is_own else variables


def existing(
    variables: Mapping[str, str], env: Mapping[str, str]
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return command and whole environment of the user's client, for its own cloud.

    variables: those that select the cloud. env: of the user.

    Raises:
        LabError: no client is installed.
    """
    path = shutil.which(NAME, path=env.get("PATH"))
    if path is None:
        raise errors.LabError(
            f"{NAME}: not found in PATH; the lab uses an existing cloud, for which it"
            " installs no client"
        )
    return (str(pathlib.Path(path)),), {**env, **variables}
