"""Options of an infrastructure provider, validated together."""

import dataclasses
import pathlib
from collections.abc import Sequence

from lib.capi import flag_table as table
from lib.daemon import common_flags
from lib.kube import kube_config
from lib.machines.model import MachineSettings
from lib.process import config, flags, start

ZONES_MAX = 100
ZONE_CHARACTERS_MAX = 256
"""Source: kubernetes-sigs/cluster-api docs/book, contract of InfraCluster."""
OFF = "0"
"""Text of an address that is not served. Source: controller-runtime."""
Address = tuple[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderOptions:
    """The command line, checked. Times in seconds; empty texts mean "not given".

    probes, metrics: addresses; None: not served. certificate: files of certificate and
    key of the metrics. lease: namespace and name; None: no election.
    """

    kubeconfig: str
    namespace: str
    watch_filter: str
    zones: tuple[str, ...]
    deletion_timeout_s: float
    sync_s: float
    workers: int
    dry_run: bool
    probes: Address | None
    metrics: Address | None
    is_secure: bool
    certificate: tuple[str, str]
    lease: tuple[str, str] | None
    values: flags.Values
    identity: str = dataclasses.field(default_factory=start.new_identity)

    def settings(self, cluster_id: str) -> MachineSettings:
        """Return the settings of the flows."""
        return MachineSettings(
            cluster_id, self.watch_filter, self.namespace, self.deletion_timeout_s
        )


def read(
    values: flags.Values,
    lease_name: str,
    service_account: pathlib.Path = kube_config.SERVICE_ACCOUNT,
) -> ProviderOptions:
    """Return the options. service_account: folder of that of the Pod.

    Raises:
        ConfigError: with every problem.
    """
    problems: list[config.FieldProblem] = []
    elects = values[common_flags.LEADER_ELECT] and not values[table.DRY_RUN]
    lease = _lease_namespace(values, service_account, problems) if elects else ""
    kubeconfig = values[common_flags.KUBECONFIG]
    if kubeconfig and (problem := config.unusable_file("--kubeconfig", kubeconfig)):
        problems.append(problem)
    options = ProviderOptions(
        kubeconfig=kubeconfig,
        namespace=values[table.NAMESPACE],
        watch_filter=values[table.WATCH_FILTER],
        zones=_zones(values[table.ZONES], problems),
        deletion_timeout_s=values[table.DELETION_TIMEOUT],
        sync_s=values[table.SYNC_PERIOD],
        workers=values[table.CONCURRENCY],
        dry_run=values[table.DRY_RUN],
        probes=address(values, table.PROBE_ADDRESS, problems),
        metrics=address(values, table.METRICS_ADDRESS, problems),
        is_secure=values[table.METRICS_SECURE],
        certificate=_certificate(values, problems),
        lease=(lease, lease_name) if elects else None,
        values=values,
    )
    config.require(problems)
    return options


def _lease_namespace(
    values: flags.Values,
    service_account: pathlib.Path,
    problems: list[config.FieldProblem],
) -> str:
    """Return the namespace of the Lease; that of the Pod unless a flag has it.

    Source: controller-runtime pkg/leaderelection.
    """
    namespace = values[table.LEASE_NAMESPACE]
    path = service_account / "namespace"
    if not namespace and path.is_file():
        namespace = path.read_text().strip()
    if not namespace:
        expected = "a namespace, since the process does not run in a Pod"
        problems.append(config.not_set(f"--{table.LEASE_NAMESPACE.name}", expected))
    return namespace


def _zones(
    zones: Sequence[str], problems: list[config.FieldProblem]
) -> tuple[str, ...]:
    name = f"--{table.ZONES.name}"
    if len(zones) > ZONES_MAX:
        text = f"{len(zones)} zones: must be at most {ZONES_MAX}"
        problems.append(config.stated(name, text))
    for zone in zones:
        if not 0 < len(zone) <= ZONE_CHARACTERS_MAX or zone != zone.strip():
            expected = f"a name of 1 to {ZONE_CHARACTERS_MAX} characters"
            problems.append(config.FieldProblem(name, zone or " ", expected))
    if len(set(zones)) < len(zones):
        text = f"{','.join(zones)}: each zone must be named once"
        problems.append(config.stated(name, text))
    return tuple(zones)


def address(
    values: flags.Values, flag: flags.Flag[str], problems: list[config.FieldProblem]
) -> Address | None:
    """Parse "host:port" or ":port"; None: not served, or with a problem."""
    text = values[flag]
    if text in (OFF, ""):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        expected = "host:port or :port, with a port from 1 to 65535, or 0"
        problems.append(config.FieldProblem(f"--{flag.name}", text, expected))
        return None
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 -- as in Go


def _certificate(
    values: flags.Values, problems: list[config.FieldProblem]
) -> tuple[str, str]:
    folder = values[table.METRICS_CERT_PATH]
    if not folder:
        return "", ""
    names = values[table.METRICS_CERT_NAME], values[table.METRICS_CERT_KEY]
    certificate, key = (str(pathlib.Path(folder) / name) for name in names)
    field = f"--{table.METRICS_CERT_PATH.name}"
    for path in (certificate, key):
        if problem := config.unusable_file(field, path):
            problems.append(problem)
    return certificate, key
