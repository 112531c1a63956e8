"""Options of the controller plugin, validated together."""

import dataclasses
from collections.abc import Callable, Sequence

from lib.csi import flag_table as table
from lib.daemon import common_flags
from lib.process import config, flags

_PORT_MAX = 65535

Judge = Callable[[flags.Values], Sequence[config.FieldProblem]]


@dataclasses.dataclass(frozen=True, slots=True)
class DriverOptions:
    """The validated command line. Empty texts mean "not set".

    http: address and port; None: not served. cloud_names: the default cloud first.
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
    max_writes: int


def none(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return no problem: a provider that requires no flag of its own."""
    del values
    return ()


def judge(
    values: flags.Values, of_cloud: Judge = none
) -> tuple[config.FieldProblem, ...]:
    """Return every problem of the values, to be reported with those of the flags.

    of_cloud: validates the flags of the provider, with a controller service.
    """
    problems: list[config.FieldProblem] = []
    endpoint = values[table.ENDPOINT]
    if not is_endpoint(endpoint):
        expected = (
            "unix:///path/of/a/socket or tcp://host:port, with a port up to 65535"
        )
        problems.append(config.required("--endpoint", endpoint, expected))
    if values[table.CONTROLLER_SERVICE]:
        problems += of_cloud(values)
    paths = [("--cloud-config", path) for path in values[table.CLOUD_CONFIG]]
    paths += [("--kubeconfig", path) for path in (values[table.KUBECONFIG],) if path]
    for name, path in paths:
        if problem := config.unusable_file(name, path):
            problems.append(problem)
    http_endpoint(values[table.HTTP_ENDPOINT], problems)
    return tuple(problems)


def is_endpoint(text: str) -> bool:
    """Report whether a text is unix://path or tcp://host:port.

    gRPC itself would use the port modulo 65536.
    """
    scheme, _, rest = text.partition("://")
    if scheme.lower() == "unix":
        return bool(rest.strip("/"))
    port = rest.rpartition(":")[2]
    has_colon = ":" in rest
    return (
        scheme.lower() == "tcp"
        and has_colon
        and port.isdecimal()
        and int(port) <= _PORT_MAX
    )


def read(values: flags.Values, of_cloud: Judge = none) -> DriverOptions:
    """Return the options. of_cloud: see `judge`.

    Raises:
        ConfigError: with every problem.
    """
    config.require(judge(values, of_cloud))
    has_controller = values[table.CONTROLLER_SERVICE]
    http = http_endpoint(values[table.HTTP_ENDPOINT], [])
    return DriverOptions(
        endpoint=values[table.ENDPOINT],
        cloud_configs=values[table.CLOUD_CONFIG],
        cloud_names=tuple(dict.fromkeys(values[table.CLOUD_NAMES])),
        cluster=values[table.CLUSTER],
        has_zones=values[table.WITH_TOPOLOGY],
        http=http,
        has_controller=has_controller,
        reads_claims=values[table.CLAIM_ANNOTATIONS],
        kubeconfig=values[table.KUBECONFIG],
        master=values[common_flags.MASTER],
        user_agents=values[common_flags.USER_AGENT],
        max_writes=values[table.MAX_WRITES],
    )


def http_endpoint(
    text: str, problems: list[config.FieldProblem]
) -> tuple[str, int] | None:
    """Parse "host:port" or ":port"; None for an empty text or with a problem."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        expected = "host:port or :port, with a port from 1 to 65535"
        problems.append(config.FieldProblem("--http-endpoint", text, expected))
        return None
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 -- as in Go
