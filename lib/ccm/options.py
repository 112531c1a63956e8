"""Options of a cloud controller manager, validated together."""

import dataclasses
import ipaddress
import itertools
import re
from collections.abc import Sequence

from lib.ccm import flag_table as table
from lib.ccm import inert_flags
from lib.daemon import common_flags
from lib.nodes import deletion_budget
from lib.process import config, exchange, flags, start, tls_policy

NODE = "cloud-node-controller"
LIFECYCLE = "cloud-node-lifecycle-controller"
SERVICE = "service-lb-controller"
ROUTE = "node-route-controller"
LEAST_WORKERS = 8
Cidr = ipaddress.IPv4Network | ipaddress.IPv6Network
_CLUSTER_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

FLAGS = (*table.WORKING, *table.OURS, *inert_flags.INERT)


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerOptions:
    """The command line, checked. Times in seconds; empty texts mean "not given"."""

    cloud_config: str
    kubeconfig: str
    master: str
    controllers: frozenset[str]
    node_monitor_s: float
    node_status_s: float
    workers: int
    service_workers: int
    first_writes: int
    max_writes: int
    cluster_name: str
    cluster_id: str
    drift_s: float
    routes: bool
    cluster_cidrs: tuple[Cidr, ...]
    route_s: float
    leader_elect: bool
    lease_name: str
    lease_namespace: str
    lease_s: float
    renew_s: float
    retry_s: float
    delete_limit: deletion_budget.Limit
    dry_run: bool
    identity: str = dataclasses.field(default_factory=start.new_identity)


def read(values: flags.Values, provider: str) -> ManagerOptions:
    """Judge what was given.

    Raises:
        ConfigError: with every problem.
    """
    config.require(judge(values, provider))
    return ManagerOptions(
        cloud_config=values[table.CLOUD_CONFIG],
        kubeconfig=values[common_flags.KUBECONFIG],
        master=values[common_flags.MASTER],
        controllers=_controllers(values[table.CONTROLLERS_FLAG], []),
        node_monitor_s=values[table.NODE_MONITOR_PERIOD],
        node_status_s=values[table.NODE_STATUS_PERIOD],
        workers=max(LEAST_WORKERS, values[table.NODE_SYNCS]),
        service_workers=max(LEAST_WORKERS, values[table.SERVICE_SYNCS]),
        first_writes=values[table.SERVICE_SYNCS],
        max_writes=values[table.LB_MAX_WRITES],
        cluster_name=values[table.CLUSTER_NAME],
        cluster_id=values[table.CLUSTER_ID],
        drift_s=values[table.LB_DRIFT_PERIOD],
        routes=values[table.CONFIGURE_ROUTES],
        cluster_cidrs=cluster_cidrs(values[table.CLUSTER_CIDR], []),
        route_s=values[table.ROUTE_PERIOD],
        leader_elect=values[common_flags.LEADER_ELECT] and not values[table.DRY_RUN],
        lease_name=values[table.LEASE_NAME],
        lease_namespace=values[table.LEASE_NAMESPACE],
        lease_s=values[table.LEASE_DURATION],
        renew_s=values[table.RENEW_DEADLINE],
        retry_s=values[table.RETRY_PERIOD],
        delete_limit=deletion_budget.Limit(
            values[table.NODE_DELETE_WINDOW],
            values[table.NODE_DELETE_MAX_COUNT],
            values[table.NODE_DELETE_MAX_PERCENT],
        ),
        dry_run=values[table.DRY_RUN],
    )


def judge(values: flags.Values, provider: str) -> tuple[config.FieldProblem, ...]:
    """Return what is wrong with the command line, as a whole."""
    problems: list[config.FieldProblem] = []
    named = values[table.CLOUD_PROVIDER]
    if named != provider:
        problems.append(config.required("--cloud-provider", named, provider))
    _controllers(values[table.CONTROLLERS_FLAG], problems)
    _check_open_paths(values[table.ALWAYS_ALLOW], problems)
    pair = (common_flags.TLS_CERT, common_flags.TLS_KEY)
    for flag in (table.CLOUD_CONFIG, common_flags.KUBECONFIG, *pair):
        _require_file(flag.name, values[flag], problems)
    for present, other in (pair, reversed(pair)):
        if values[present] and not values[other]:
            expected = f"the path of a file, since --{present.name} is set"
            problems.append(config.not_set(f"--{other.name}", expected))
    problems += tls_policy.problems(
        values[table.TLS_MIN_VERSION], values[table.TLS_CIPHER_SUITES]
    )
    _require_order(values, problems)
    cluster_cidrs(values[table.CLUSTER_CIDR], problems)
    cluster_id = values[table.CLUSTER_ID]
    if cluster_id and not _CLUSTER_ID.fullmatch(cluster_id):
        expected = "1-100 letters, digits, '.', '_' or '-'"
        problems.append(config.FieldProblem("--cluster-id", cluster_id, expected))
    return tuple(problems)


def cluster_cidrs(text: str, problems: list[config.FieldProblem]) -> tuple[Cidr, ...]:
    """Return the CIDRs of --cluster-cidr; none of an empty text.

    Source: k8s.io/cloud-provider app/core.go, startRouteController.
    """
    name = f"--{table.CLUSTER_CIDR.name}"
    cidrs: list[Cidr] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        try:
            if "/" not in item:
                raise ValueError
            cidrs.append(ipaddress.ip_network(item))
        except ValueError:
            expected = "a CIDR without host bits, such as 10.111.0.0/16"
            problems.append(config.FieldProblem(name, item, expected))
    if len(cidrs) > 1 and sorted(cidr.version for cidr in cidrs) != [4, 6]:
        expected = "one CIDR, or one of IPv4 and one of IPv6"
        problems.append(config.FieldProblem(name, text, expected))
    return tuple(cidrs)


def _check_open_paths(
    patterns: Sequence[str], problems: list[config.FieldProblem]
) -> None:
    for pattern in patterns:
        try:
            exchange.OpenPaths.parse([pattern])
        except ValueError:
            name = f"--{table.ALWAYS_ALLOW.name}"
            expected = "a path with * only at its end"
            problems.append(config.FieldProblem(name, pattern, expected))


def _controllers(
    words: Sequence[str], problems: list[config.FieldProblem]
) -> frozenset[str]:
    """Return the names of those that run.

    Source: k8s.io/controller-manager app.IsControllerEnabled: a name beats "*".
    """
    by_word = {alias: name for name, alias in table.CONTROLLERS.items()}
    by_word |= {name: name for name in table.CONTROLLERS}
    chosen: dict[str, bool] = {}
    for word in words:
        bare = word.removeprefix("-")
        if bare in by_word:
            chosen[by_word[bare]] = not word.startswith("-")
        elif word != "*":
            known = ", ".join(["*", *table.CONTROLLERS])
            problems.append(
                config.FieldProblem("--controllers", word, f"one of {known}")
            )
    return frozenset(
        name for name in table.CONTROLLERS if chosen.get(name, "*" in words)
    )


def _require_file(name: str, path: str, problems: list[config.FieldProblem]) -> None:
    if path and (problem := config.unusable_file(f"--{name}", path)):
        problems.append(problem)


def _require_order(values: flags.Values, problems: list[config.FieldProblem]) -> None:
    """See that lease duration > renew deadline > retry period.

    Source: client-go leaderelection NewLeaderElector.
    """
    times = (table.LEASE_DURATION, table.RENEW_DEADLINE, table.RETRY_PERIOD)
    for longer, shorter in itertools.pairwise(times):
        if values[longer] <= values[shorter]:
            shown = longer.kind.show(values[longer])
            least = shorter.kind.show(values[shorter])
            expected = f"more than --{shorter.name} ({least})"
            problems.append(config.FieldProblem(f"--{longer.name}", shown, expected))
