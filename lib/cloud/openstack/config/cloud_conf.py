"""The files that describe one OpenStack: cloud.conf, and all that it refers to."""

import contextlib
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from lib.cloud import protocol
from lib.cloud.openstack.config import reader as cloud_config
from lib.cloud.openstack.config import settings
from lib.cloud.support.source import CloudSource, Observers, ReadConfig
from lib.process import config, files

Connect = Callable[[settings.Config, Observers], protocol.Cloud]


class CloudConf:
    """Reads one cloud of some files; problems are reported as those of flags are."""

    def __init__(
        self,
        paths: Sequence[str],
        env: Mapping[str, str],
        name: str = "",
        sections: Collection[str] = cloud_config.SECTIONS,
        *,
        title: str = "",
    ) -> None:
        """paths: of --cloud-config; later files win. name, sections: see `config`.

        title: name in messages; empty: the paths.
        """
        self._paths = tuple(paths)
        self._env = env
        self._name = name
        self._sections = sections
        self._title = title or ", ".join(self._paths)

    def source(self, connect: Connect) -> CloudSource[settings.Config]:
        """Return what opens the cloud. connect: may raise the ConfigError of settings.

        `open` raises the ConfigError of lib/process.
        """

        def connected(config: settings.Config, observers: Observers) -> protocol.Cloud:
            with self._translated():
                return connect(config, observers)

        return CloudSource(self._paths, self.read, connected)

    def read(self) -> ReadConfig[settings.Config]:
        """Read everything.

        Raises:
            ConfigError: a file can't be used; every problem names section, key, value.
        """
        counted = {pathlib.Path(path) for path in self._paths}

        def read_file(path: pathlib.Path) -> str | None:
            counted.add(path)
            return cloud_config.read_file(path)

        text = "\n".join(_text(path) for path in self._paths)
        with self._translated():
            config = self._config(text, read_file)
        credentials = config.credentials
        pems = filter(
            None, (credentials.ca_file, credentials.cert_file, credentials.key_file)
        )
        counted.update(pathlib.Path(pem) for pem in pems)
        return ReadConfig(config, frozenset(counted), config.warnings)

    def _config(self, text: str, read_file: cloud_config.ReadFile) -> settings.Config:
        try:
            return cloud_config.read(
                text, self._env, read_file, self._name, self._sections
            )
        except (OSError, UnicodeDecodeError) as error:
            # The decoder's own words quote the file, which holds passwords.
            reason = "not a text file in UTF-8"
            if isinstance(error, OSError):
                reason = files.reason(error)
            message = f"[Global] clouds-file: {reason}"
            raise settings.CloudConfError((message,)) from error

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Report what is wrong in the files with their names."""
        try:
            yield
        except settings.CloudConfError as error:
            problems = [f"{self._title}: {problem}" for problem in error.problems]
            raise config.ConfigError(problems) from error


def _text(path: str) -> str:
    if not path:
        problem = config.not_set("--cloud-config", "the path of a cloud.conf")
        raise config.ConfigError([problem])
    return config.read_text(path, "--cloud-config")
