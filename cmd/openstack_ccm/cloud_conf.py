"""Reads cloud.conf, and tells its problems the way flags tell theirs."""

import pathlib
from collections.abc import Mapping

from lib.cloud.openstack import config as cloud_config
from lib.cloud.openstack import settings
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
        told = [f"{path}: {problem}" for problem in error.problems]
        raise config.ConfigError(told) from error
