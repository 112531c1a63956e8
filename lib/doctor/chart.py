"""Checks of what an umbrella chart requires in its cluster and in the cloud.

Each failure names the field, its value, and what would be valid.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lib.cloud import checkup, errors
from lib.doctor import deployed, machine_api
from lib.doctor.model import CheckResult, CheckState
from lib.kube import client, listing, objects, resources
from lib.kube import errors as kube_errors
from lib.process import config

CHECK = "chart"
_LISTED_MAX = 8


@dataclasses.dataclass(frozen=True, slots=True)
class CloudName:
    """Name of an object of the cloud. field: of the object that contains the name."""

    field: str
    kind: str
    name: str


class NamingObject(msgspec.Struct, frozen=True):
    """The parts of an object in which names of the cloud are."""

    metadata: objects.ObjectMeta
    spec: Mapping[str, Any] = msgspec.field(default_factory=dict)
    parameters: Mapping[str, str] | None = None
    provisioner: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class NamingKind:
    """A kind of the cluster. names: returns the names of the cloud in an object."""

    kind: resources.Resource
    names: Callable[[NamingObject], Iterable[CloudName]]


@dataclasses.dataclass(frozen=True, slots=True)
class UmbrellaChart:
    """Expectations of a release of an umbrella chart.

    components: those with credentials, by the value of their label. keys: usual
    keys of the configuration in a Secret. variables: that repeat a key of the Secret,
    by key. other_form: variable with credentials, which excludes a file of them.
    definitions: kinds of its CRDs that no other check has. open: opens the cloud with
    the credentials of a Deployment, or raises ConfigError. reference: returns the
    workloads of the reference that run, or raises KubeError. flags: returns problems of
    the command line of a component, with which it runs all the same.
    """

    name: str
    components: Mapping[str, str]
    keys: Sequence[str]
    variables: Mapping[str, str]
    other_form: str
    definitions: tuple[resources.Resource, ...]
    naming: tuple[NamingKind, ...]
    open: Callable[[deployed.CloudFiles, float], checkup.Checkup]
    reference: Callable[[client.Api, float], Sequence[str]]
    flags: Callable[[str, Sequence[str]], Iterable[config.FieldProblem]]


def results(
    api: client.Api, chart: UmbrellaChart, timeout_s: float
) -> tuple[CheckResult, ...]:
    """Return the lines of this check. timeout_s: of each call.

    Raises:
        KubeError: the workloads cannot be listed.
    """
    installed = deployed.every(api, chart.components, timeout_s)
    if not installed:
        text = f"skipped: no component of {chart.name} is installed"
        return (CheckResult(CHECK, CheckState.SKIPPED, text),)
    clouds: list[checkup.Checkup] = []
    of_components = [
        line
        for deployment in installed
        for line in _of_component(api, chart, deployment, clouds, timeout_s)
    ]
    return (
        *of_components,
        *_of_flags(chart, installed),
        *_of_reference(chart, chart.reference(api, timeout_s)),
        *_of_definitions(api, chart, timeout_s),
        *_of_names(api, chart, _offered(clouds), timeout_s),
    )


def _line(state: CheckState, text: str, remedy: str = "") -> CheckResult:
    return CheckResult(CHECK, state, text, remedy)


def _failed(text: str, remedy: str) -> CheckResult:
    return _line(CheckState.FAILED, text, remedy)


# ---------------------------------------------------------------- credentials


def _of_component(
    api: client.Api,
    chart: UmbrellaChart,
    deployment: deployed.Deployed,
    clouds: list[checkup.Checkup],
    timeout_s: float,
) -> Iterator[CheckResult]:
    """Check the Secret of a component. clouds: the cloud that it opens is added."""
    title = f"Deployment {deployment.name}"
    try:
        if isinstance(deployment.secret, config.ConfigError):
            raise deployment.secret
        files = deployed.read(api, deployment.secret, chart.keys, timeout_s)
        problems = tuple(_contradictions(chart, deployment.secret, files))
        if problems:
            texts = "; ".join(map(str, problems))
            yield _failed(f"{title}: {texts}", "correct the value of the chart")
            return
        cloud = chart.open(files, timeout_s)
        line = _opened(f"{title}: {files.title}", cloud)
        clouds.extend([cloud] if line.state is CheckState.OK else [])
        yield line
    except kube_errors.KubeError as error:
        remedy = "use a kubeconfig whose user can get this Secret"
        yield _line(CheckState.SKIPPED, f"{title}: {error}", remedy)
    except config.ConfigError as error:
        lines = str(error).splitlines()
        # What the reader of Deployments reports begins with the title.
        texts = "; ".join(
            line.removeprefix(f"{deployed.FLAG}: ").removeprefix(f"{title}: ")
            for line in lines
        )
        remedy = "correct the Secret; Pods that wait for it start then"
        yield _failed(f"{title}: {texts}", remedy)


def _contradictions(
    chart: UmbrellaChart, secret: deployed.SecretKey, files: deployed.CloudFiles
) -> Iterator[config.FieldProblem]:
    """Yield two forms of credentials, and values of another project or cluster."""
    if chart.other_form in {variable.name for variable in secret.variables}:
        yield config.conflict(chart.other_form, f"the file of {files.title}")
    where = f"Secret {secret.namespace}/{secret.name}"
    for key, name in chart.variables.items():
        own = files.keys.get(key, b"").decode(errors="replace").strip()
        used = files.variables.get(name, "")
        if own and used != own:
            expected = f"{config.quoted(own)}, the key {key} of the {where}"
            yield config.required(name, used, expected)


def _opened(title: str, cloud: checkup.Checkup) -> CheckResult:
    try:
        login = cloud.login()
        required = [row for row in cloud.services() if row.needed]
    except errors.CloudError as error:
        remedy = "write credentials into the Secret that the cloud accepts"
        return _failed(f"{title}: {error.message}", remedy)
    shown = f"{title}: user {login.user}, project {login.project}"
    for service in required:
        if service.error is not None:
            remedy = "name the project of this user, or grant the user its permissions"
            return _failed(f"{shown}: {service.error.message}", remedy)
    return _line(CheckState.OK, shown)


# ---------------------------------------------------------------- cluster


def _of_flags(
    chart: UmbrellaChart, installed: Iterable[deployed.Deployed]
) -> Iterator[CheckResult]:
    for deployment in installed:
        for problem in chart.flags(deployment.component, deployment.words):
            text = f"Deployment {deployment.name}: {problem}"
            yield _line(CheckState.WARNING, text, "set the value of the chart")


def _of_reference(
    chart: UmbrellaChart, running: Sequence[str]
) -> Iterator[CheckResult]:
    for name in running:
        text = f"{name} of the reference runs: must be stopped beside {chart.name}"
        yield _failed(text, "the page of the migration has the commands")
    if not running:
        yield _line(CheckState.OK, "no program of the reference runs")


def _of_definitions(
    api: client.Api, chart: UmbrellaChart, timeout_s: float
) -> Iterator[CheckResult]:
    remedy = "apply the CRDs of this release: helm show crds"
    try:
        observed = machine_api.definitions_of(api, chart.definitions, timeout_s)
    except kube_errors.KubeError as error:
        yield _line(CheckState.SKIPPED, str(error))
        return
    for text in machine_api.unserved(chart.definitions, observed):
        yield _failed(text, remedy)


# ---------------------------------------------------------------- names of the cloud


def _offered(clouds: Iterable[checkup.Checkup]) -> checkup.Offered:
    """Return the names that the credentials of any component may read."""
    known: dict[str, tuple[str, ...] | errors.CloudError] = {}
    for cloud in clouds:
        for kind, names in cloud.offered().items():
            if isinstance(known.setdefault(kind, names), errors.CloudError):
                known[kind] = names
    return known


def _of_names(
    api: client.Api, chart: UmbrellaChart, offered: checkup.Offered, timeout_s: float
) -> Iterator[CheckResult]:
    """Check the names of the cloud in objects of the cluster."""
    if not offered:
        yield _line(CheckState.SKIPPED, "names in the cloud: no credentials are valid")
        return
    valid = 0
    for naming in chart.naming:
        kind = naming.kind
        try:
            listed = listing.read(api, kind, NamingObject, timeout_s=timeout_s)
        except kube_errors.NotFound:
            continue
        except kube_errors.KubeError as error:
            yield _line(CheckState.SKIPPED, f"{kind.plural}: {error}")
            continue
        for item in listed.items:
            for named in naming.names(item):
                title = f"{kind.kind} {item.metadata.key}"
                line = _of_name(title, named, offered)
                valid += line is None
                yield from () if line is None else (line,)
    yield _line(CheckState.OK, f"{valid} names in objects of the cluster exist")


def _of_name(
    title: str, named: CloudName, offered: checkup.Offered
) -> CheckResult | None:
    """Check one name; None: the cloud has the object."""
    names = offered.get(named.kind, ())
    if isinstance(names, errors.CloudError):
        text = f"{title}: {named.field}: {names.message}"
        return _line(CheckState.WARNING, text, "grant a component this permission")
    if named.name in names:
        return None
    more = ", ..." if len(names) > _LISTED_MAX else ""
    shown = ", ".join(names[:_LISTED_MAX]) + more
    expected = f"one of {shown}, the {named.kind} objects of the cloud"
    if not names:
        expected = f"a {named.kind} of the cloud, which has none"
    problem = config.required(named.field, named.name, expected)
    return _failed(f"{title}: {problem}", "correct the object, or create the other")
