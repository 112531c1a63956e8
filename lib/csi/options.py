"""What a user asks of the controller plugin, judged as a whole."""

import dataclasses
import pathlib

from lib.csi import flag_table as table
from lib.process import config, flags


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """The command line, checked. Empty texts mean "not given".

    http: address and port, None for nowhere. cloud_names: the default one first.
    """

    endpoint: str
    cloud_configs: tuple[str, ...]
    cloud_names: tuple[str, ...]
    cluster: str
    has_zones: bool
    http: tuple[str, int] | None
    has_controller: bool
    reads_claims: bool
    kubeconfig: str
    master: str
    user_agents: tuple[str, ...]


def read(values: flags.Values) -> Options:
    """Judge what was given.

    Raises:
        ConfigError: with every problem.
    """
    problems: list[config.Problem] = []
    if not values[table.ENDPOINT]:
        wanted = "unix:///path/of/a/socket or tcp://host:port"
        problems.append(config.Problem("--endpoint", None, wanted))
    has_controller = values[table.CONTROLLER_SERVICE]
    if has_controller and not values[table.CLOUD_CONFIG]:
        wanted = "the path of a cloud.conf"
        problems.append(config.Problem("--cloud-config", None, wanted))
    given = [("--cloud-config", path) for path in values[table.CLOUD_CONFIG]]
    given += [("--kubeconfig", path) for path in (values[table.KUBECONFIG],) if path]
    for name, path in given:
        if not pathlib.Path(path).is_file():
            problems.append(config.Problem(name, path, "a file that exists"))
    http = _http(values[table.HTTP_ENDPOINT], problems)
    config.require(problems)
    return Options(
        endpoint=values[table.ENDPOINT],
        cloud_configs=values[table.CLOUD_CONFIG],
        cloud_names=tuple(dict.fromkeys(values[table.CLOUD_NAMES])),
        cluster=values[table.CLUSTER],
        has_zones=values[table.WITH_TOPOLOGY],
        http=http,
        has_controller=has_controller,
        reads_claims=values[table.CLAIM_ANNOTATIONS],
        kubeconfig=values[table.KUBECONFIG],
        master=values[table.MASTER],
        user_agents=values[table.USER_AGENT],
    )


def _http(text: str, problems: list[config.Problem]) -> tuple[str, int] | None:
    """Read "host:port" or ":port"."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        wanted = "host:port or :port, with a port from 1 to 65535"
        problems.append(config.Problem("--http-endpoint", text, wanted))
        return None
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 -- as in Go
