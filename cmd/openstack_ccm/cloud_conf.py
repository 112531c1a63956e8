"""Reads cloud.conf, and tells its problems the way flags tell theirs."""

import pathlib
from collections.abc import Mapping

from lib.ccm import metrics
from lib.cloud import protocol
from lib.cloud.openstack import cloud, settings
from lib.cloud.openstack import config as cloud_config
from lib.process import config


def read(path: str, env: Mapping[str, str]) -> settings.Config:
    """Read the file that --cloud-config names.

    Raises:
        ConfigError: it is missing or wrong; every problem names section, key, value.
    """
    if not path:
        raise config.ConfigError(
            [config.Problem("--cloud-config", None, "the path of a cloud.conf")]
        )
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        wanted = f"a text file that can be read ({error})"
        problem = config.Problem("--cloud-config", path, wanted)
        raise config.ConfigError([problem]) from error
    try:
        return cloud_config.read(text, env)
    except settings.ConfigError as error:
        raise _told(path, error) from error


def connect(
    path: str,
    read: settings.Config,
    on_call: metrics.OnCall,
    user_agents: tuple[str, ...],
) -> protocol.Cloud:
    """Open the cloud that the file describes; nothing is asked of it yet.

    Raises:
        ConfigError: a certificate or key that the file names can't be read.
    """
    try:
        return cloud.connect(read, on_call, user_agents)
    except settings.ConfigError as error:
        raise _told(path, error) from error


def _told(path: str, error: settings.ConfigError) -> config.ConfigError:
    return config.ConfigError([f"{path}: {problem}" for problem in error.problems])
