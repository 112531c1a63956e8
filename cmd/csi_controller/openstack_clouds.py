"""Opens OpenStack clouds from cloud.conf, as often as its files change."""

import pathlib
from collections.abc import Mapping, Sequence

from lib.cloud import protocol
from lib.cloud.openstack import cloud, reference_metrics, settings, with_volumes
from lib.cloud.openstack import config as cloud_config
from lib.cloud.openstack.volumes import cloud as volumes
from lib.cloud.support import absence_scope, circuits
from lib.csi import driver
from lib.daemon import counting, reopening
from lib.process import config, files

FEATURES = volumes.FEATURES
REFERENCE = counting.Reference(reference_metrics.CALLS, reference_metrics.request)
DRIVER = "cinder.csi.openstack.org"
SECTIONS = frozenset({"global", "metadata", "blockstorage"})
"""Of cloud.conf; others affect neither the start nor a reload.

Source: kubernetes/cloud-provider-openstack pkg/csi/cinder/openstack (Config)."""
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"


def doors(
    paths: Sequence[str],
    names: Sequence[str],
    env: Mapping[str, str],
    user_agents: tuple[str, ...],
) -> driver.Doors:
    """Give a door for each named cloud of some files; later files win.

    Raises:
        ConfigError: a file can't be used; every problem is named.
    """
    opened = {name: _Door(paths, name, env, user_agents) for name in names}
    problems: list[config.Problem | str] = []
    for door in opened.values():
        try:
            door.read()
        except config.ConfigError as error:
            problems += [one for one in error.problems if one not in problems]
    if problems:
        raise config.ConfigError(problems)
    return {name: door.open for name, door in opened.items()}


class _Door:
    """One cloud."""

    def __init__(
        self,
        paths: Sequence[str],
        name: str,
        env: Mapping[str, str],
        user_agents: tuple[str, ...],
    ) -> None:
        self._paths = tuple(pathlib.Path(path) for path in paths)
        self._name = name
        self._env = env
        self._user_agents = user_agents
        self._memory = absence_scope.Memory()

    def open(self, calls: counting.CloudMetrics) -> reopening.Opened:
        """Open the cloud that the files describe now; nothing is asked of it yet.

        Files are watched before they are read, so that no change is missed.

        Raises:
            ConfigError: a file can't be used.
        """
        named = set(self._paths)
        while True:
            watch = files.FileWatch(sorted(named))
            found, more = self.read()
            if more <= named:
                opened = self._connect(found, calls)
                return reopening.Opened(opened, watch.changed, found.warnings)
            named |= more

    def read(self) -> tuple[settings.Config, set[pathlib.Path]]:
        """Read everything, and name each file that counted, missing ones too.

        Raises:
            ConfigError: a file can't be used.
        """
        named: set[pathlib.Path] = set()

        def read_file(path: pathlib.Path) -> str | None:
            named.add(path)
            return cloud_config.read_file(path)

        text = "\n".join(self._text(path) for path in self._paths)
        try:
            found = cloud_config.read(text, self._env, read_file, self._name, SECTIONS)
        except settings.ConfigError as error:
            raise self._told(error) from error
        except (OSError, UnicodeDecodeError) as error:
            # The decoder's own words quote the file, which holds passwords.
            kind = type(error).__name__
            message = f"{self._title()}: its clouds.yaml can't be read ({kind})"
            raise config.ConfigError([message]) from error
        given = found.credentials
        pems = (given.ca_file, given.cert_file, given.key_file)
        return found, named | {pathlib.Path(pem) for pem in pems if pem}

    def _text(self, path: pathlib.Path) -> str:
        try:
            return path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            kind = type(error).__name__
            wanted = f"a text file that can be read ({kind})"
            problem = config.Problem("--cloud-config", str(path), wanted)
            raise config.ConfigError([problem]) from error

    def _connect(
        self, found: settings.Config, calls: counting.CloudMetrics
    ) -> protocol.Cloud:
        watch: circuits.CircuitObserver = calls.circuit
        try:
            api = cloud.open_client(found, calls.observe, self._user_agents, watch)
            return with_volumes.of_client(api, found, self._memory)
        except settings.ConfigError as error:
            raise self._told(error) from error

    def _title(self) -> str:
        return ", ".join(str(path) for path in self._paths)

    def _told(self, error: settings.ConfigError) -> config.ConfigError:
        return config.ConfigError([f"{self._title()}: {one}" for one in error.problems])
