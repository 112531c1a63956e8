"""Reads cloud.conf, and tells its problems the way flags tell theirs."""

import pathlib
from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.openstack import cloud, reference_metrics, settings, with_load_balancers
from lib.cloud.openstack import config as cloud_config
from lib.cloud.support import absence_scope
from lib.daemon import counting, reopening
from lib.process import config, files

REFERENCE = counting.Reference(
    reference_metrics.CALLS,
    reference_metrics.request,
    reference_metrics.RECONCILIATIONS,
)
"""cloud-provider-openstack."""


def read(
    path: str,
    env: Mapping[str, str],
    read_file: cloud_config.ReadFile = cloud_config.read_file,
) -> settings.Config:
    """Read the file that --cloud-config names.

    read_file: reads what that file refers to.

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
        return cloud_config.read(text, env, read_file)
    except settings.ConfigError as error:
        raise _told(path, error) from error
    except (OSError, UnicodeDecodeError) as error:
        # The decoder's own words quote the file, which holds passwords.
        kind = type(error).__name__
        message = f"{path}: the clouds.yaml it refers to can't be read ({kind})"
        raise config.ConfigError([message]) from error


class Door:
    """Opens the cloud of one cloud.conf, as often as its files change."""

    def __init__(
        self, path: str, env: Mapping[str, str], user_agents: tuple[str, ...]
    ) -> None:
        self._path = path
        self._env = env
        self._user_agents = user_agents
        self._memory = absence_scope.Memory()

    def open(self, calls: counting.CloudMetrics) -> reopening.Opened:
        """Open the cloud that the files describe now; nothing is asked of it yet.

        Files are watched before they are read, so that no change is missed.

        Raises:
            ConfigError: as `read`; or a certificate that a file names can't be read.
        """
        named = {pathlib.Path(self._path)}
        while True:
            watch = files.FileWatch(sorted(named))
            found, more = self._read()
            if more <= named:
                opened = self._connect(found, calls)
                return reopening.Opened(opened, watch.changed, found.warnings)
            named |= more

    def _read(self) -> tuple[settings.Config, set[pathlib.Path]]:
        """Read everything, and name each file that counted, missing ones too."""
        named: set[pathlib.Path] = set()

        def read_file(path: pathlib.Path) -> str | None:
            named.add(path)
            return cloud_config.read_file(path)

        found = read(self._path, self._env, read_file)
        given = found.credentials
        pems = (given.ca_file, given.cert_file, given.key_file)
        return found, named | {pathlib.Path(pem) for pem in pems if pem}

    def _connect(
        self, found: settings.Config, calls: counting.CloudMetrics
    ) -> protocol.Cloud:
        try:
            api = cloud.open_client(
                found, calls.observe, self._user_agents, calls.circuit
            )
            return with_load_balancers.of_client(api, found, self._memory)
        except settings.ConfigError as error:
            raise _told(self._path, error) from error


def _told(path: str, error: settings.ConfigError) -> config.ConfigError:
    return config.ConfigError([f"{path}: {problem}" for problem in error.problems])
