"""All checks: each part is read and checked, whatever the results of the others."""

import dataclasses
import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from lib.cloud import checkup, errors
from lib.doctor import chart as umbrella
from lib.doctor import cluster, ids, judge, machine_api, node_instances
from lib.doctor.model import (
    CheckResult,
    CheckState,
    ClockReadings,
    DaemonAccount,
    NodeIdentity,
    Read,
    ReadFailure,
    Right,
)
from lib.kube import errors as kube_errors
from lib.kube import greeting
from lib.process import config, logs

T = TypeVar("T")
Now = Callable[[], datetime.datetime]

_NO_TOKEN = "skipped: authentication failed"  # noqa: S105 # no password at all
_WITH_TOKEN = (
    judge.ENDPOINTS,
    judge.QUOTAS,
    judge.BALANCERS,
    judge.ROUTES,
    judge.CLOUD_RIGHTS,
)
_NO_CONF = "skipped: no valid configuration"
_NO_SERVER = "skipped: the API server does not answer"


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """Expected state of the cluster.

    cloud: provider of the daemon. component: its name. remedies: of that provider.
    account: of which the permissions are checked; None: that of the component's
    Deployment, or the user of the kubeconfig. components: names of
    those whose Pods are checked. machines: provider of machines of Cluster API; None:
    the cloud has none. chart: umbrella chart; None: it is not checked.
    """

    cloud: str
    remedies: checkup.Remedies
    rights: tuple[Right, ...]
    lease_namespace: str
    lease_name: str
    component: str
    account: DaemonAccount | None = None
    components: tuple[str, ...] = ()
    machines: machine_api.MachineProvider | None = None
    chart: umbrella.UmbrellaChart | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Functions that open cloud and cluster.

    cloud raises ConfigError; greet and cluster raise KubeError.
    """

    cloud: Callable[[], checkup.Checkup]
    greet: Callable[[], greeting.Greeting]
    cluster: Callable[[], cluster.ClusterReader]


def examine(sources: Sources, expected: Expected, now: Now) -> Iterator[CheckResult]:
    """Execute all checks; yield a result or more for each of `judge.CHECKS`.

    Each is yielded as soon as it is known: a cloud that does not answer takes a while.
    """
    cloud = _attempt(sources.cloud)
    warnings = Read(cloud.value.warnings) if isinstance(cloud, Read) else cloud
    yield from judge.configuration(warnings)
    yield from _of_cloud(cloud, expected.remedies, now)
    yield from _of_cluster(sources, expected, cloud, now)


def is_well(findings: Sequence[CheckResult]) -> bool:
    """Report whether no check has failed."""
    return all(finding.state is not CheckState.FAILED for finding in findings)


def _attempt(read: Callable[[], T]) -> Read[T] | ReadFailure:
    """Read something; an error becomes a result.

    Unexpected errors too: a library that fails on an unusual answer is a finding, and
    must not hide the results of the other checks.
    """
    try:
        return Read(read())
    except errors.CloudError as error:
        return ReadFailure(error.summary, error.reason)
    except kube_errors.KubeError as error:
        return ReadFailure(str(error))
    except config.ConfigError as error:
        return ReadFailure("; ".join(str(error).splitlines()))
    except msgspec.DecodeError:
        return ReadFailure("unexpected answer: it does not match the API")
    except Exception as error:
        logs.get(__name__).error("unexpected error in check", exc_info=error)
        return ReadFailure(f"unexpected error in this check ({type(error).__name__})")


def _of_cloud(
    cloud: Read[checkup.Checkup] | ReadFailure, remedies: checkup.Remedies, now: Now
) -> Iterator[CheckResult]:
    if isinstance(cloud, ReadFailure):
        yield from _skipped(
            (judge.CREDENTIALS, *_WITH_TOKEN, judge.CLOUD_CLOCK), _NO_CONF
        )
        return
    asked = cloud.value
    logged_in = _attempt(asked.login)
    yield judge.login(logged_in, remedies)
    if isinstance(logged_in, ReadFailure):
        yield from _skipped(_WITH_TOKEN, _NO_TOKEN)
    else:
        yield from _services(asked, remedies)
        yield from _quotas(asked)
        yield from judge.balancers(_attempt(asked.balancing), remedies)
        yield from judge.routes(_attempt(asked.routing))
        yield from judge.cloud_rights(_attempt(asked.rights))
    yield judge.clock(judge.CLOUD_CLOCK, _attempt(lambda: _clocks(asked.time, now)))


def _skipped(names: Iterable[str], why: str) -> Iterator[CheckResult]:
    for name in names:
        yield CheckResult(name, CheckState.SKIPPED, why)


def _services(
    asked: checkup.Checkup, remedies: checkup.Remedies
) -> tuple[CheckResult, ...]:
    services = _attempt(asked.services)
    if isinstance(services, ReadFailure):
        return (CheckResult(judge.ENDPOINTS, CheckState.SKIPPED, services.text),)
    return tuple(
        judge.service(endpoint, asked.region, remedies) for endpoint in services.value
    )


def _quotas(asked: checkup.Checkup) -> tuple[CheckResult, ...]:
    quotas = _attempt(asked.quotas)
    if isinstance(quotas, ReadFailure):
        return (CheckResult(judge.QUOTAS, CheckState.SKIPPED, quotas.text),)
    return tuple(
        line
        for kind, quota in quotas.value.items()
        for line in judge.quotas(kind, quota)
    )


def _clocks(
    cloud_time: Callable[[], datetime.datetime | None], now: Now
) -> ClockReadings:
    """Read the remote clock; the local one is that of the middle of the exchange."""
    before = now()
    reported = cloud_time()
    return ClockReadings(before + (now() - before) / 2, reported)


def _of_cluster(
    sources: Sources,
    expected: Expected,
    cloud: Read[checkup.Checkup] | ReadFailure,
    now: Now,
) -> Iterator[CheckResult]:
    versions: list[str] = []

    def greet() -> datetime.datetime | None:
        greeted = sources.greet()
        versions.append(greeted.version)
        return greeted.at

    clocks = _attempt(lambda: _clocks(greet, now))
    opened = _attempt(sources.cluster) if isinstance(clocks, Read) else clocks
    if isinstance(opened, ReadFailure):
        unasked = (
            judge.KUBE_CLOCK,
            judge.RIGHTS,
            judge.LEASE,
            judge.PROVIDER_IDS,
            judge.PODS,
        )
        yield judge.api_server(opened)
        yield from _skipped(unasked, _NO_SERVER)
        return
    yield judge.api_server(Read("".join(versions)))
    yield judge.clock(judge.KUBE_CLOCK, clocks)
    yield from _rights(opened.value, expected)
    yield _lease(opened.value, expected, now)
    nodes = _attempt(opened.value.nodes)
    region = cloud.value.region if isinstance(cloud, Read) else None
    yield from ids.findings(nodes, expected.cloud, region, expected.remedies)
    yield from _instances(cloud, nodes)
    yield from _machine_api(opened.value, expected.machines)
    yield from _chart(opened.value, expected.chart)
    yield from judge.pods(_attempt(lambda: opened.value.pods(expected.components)))


def _instances(
    cloud: Read[checkup.Checkup] | ReadFailure,
    nodes: Read[tuple[NodeIdentity, ...]] | ReadFailure,
) -> tuple[CheckResult, ...]:
    """Check the instances of Nodes; no line for a cloud without such a check."""
    if isinstance(cloud, ReadFailure) or isinstance(nodes, ReadFailure):
        return ()
    asked, refs = cloud.value, node_instances.refs(nodes.value)
    if not isinstance(asked, checkup.InstanceCheckup):
        return ()
    read = _attempt(lambda: asked.instance_problems(refs))
    return node_instances.results(len(refs), read)


def _machine_api(
    asked: cluster.ClusterReader, expected: machine_api.MachineProvider | None
) -> tuple[CheckResult, ...]:
    """Check the provider of machines; no line for a cloud that has none."""
    if expected is None:
        return ()
    return machine_api.results(expected, _attempt(lambda: asked.machine_api(expected)))


def _chart(
    asked: cluster.ClusterReader, expected: umbrella.UmbrellaChart | None
) -> tuple[CheckResult, ...]:
    """Check the umbrella chart; no line for a cloud without such a check."""
    if expected is None:
        return ()
    lines = _attempt(lambda: asked.chart(expected))
    if isinstance(lines, ReadFailure):
        return (CheckResult(umbrella.CHECK, CheckState.SKIPPED, lines.text),)
    return lines.value


def _rights(
    asked: cluster.ClusterReader, expected: Expected
) -> tuple[CheckResult, ...]:
    named = expected.account
    if named and _attempt(lambda: asked.has_account(named)) == Read(False):
        return (judge.no_account(named),)
    account = named or _deployed(asked, expected.component)
    gaps = _attempt(lambda: asked.gaps(expected.rights, account))
    if isinstance(gaps, ReadFailure) and account and not named:
        # The user may not review others: it may be the daemon itself.
        account = None
        gaps = _attempt(lambda: asked.gaps(expected.rights, None))
    user = str(account or "the kubeconfig's user")
    return judge.rights(len(expected.rights), user, gaps, expected.component)


def _deployed(asked: cluster.ClusterReader, component: str) -> DaemonAccount | None:
    account = _attempt(lambda: asked.account_of(component))
    return account.value if isinstance(account, Read) else None


def _lease(asked: cluster.ClusterReader, expected: Expected, now: Now) -> CheckResult:
    namespace, name = expected.lease_namespace, expected.lease_name
    read = _attempt(lambda: asked.lease(namespace, name))
    return judge.lease(f"{namespace}/{name}", read, now())
