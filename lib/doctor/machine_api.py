"""Checks of Cluster API and of the provider of its machines: CRDs, contracts, RBAC.

Source: kubernetes-sigs/cluster-api docs/book, contracts (labels of CRDs).
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lib.doctor import components, runtime_extensions
from lib.doctor.model import (
    CheckResult,
    CheckState,
    DaemonAccount,
    Read,
    ReadFailure,
    Right,
)
from lib.doctor.runtime_extensions import HeldObject, RuntimeExtension
from lib.kube import client, errors, objects, resources
from lib.process import decoding

CHECK = "Cluster API"
_REMEDY_CRD = "apply the CRDs of the provider's chart, or run clusterctl init"


@dataclasses.dataclass(frozen=True, slots=True)
class MachineProvider:
    """Expectations of a provider.

    component: its program, and the name of its ServiceAccount. core: kinds of Cluster
    API that it reads. definitions: its own kinds. contracts: labels of their CRDs, with
    the version that fulfils each contract. rights: those of its chart; those of a Role
    are in namespace role_namespace. finalizers: its own, by kind.
    """

    component: str
    core: tuple[resources.Resource, ...]
    definitions: tuple[resources.Resource, ...]
    contracts: Mapping[str, str]
    rights: tuple[Right, ...]
    role_namespace: str = "kube-system"
    finalizers: Mapping[resources.Resource, str] = dataclasses.field(
        default_factory=dict
    )

    def rights_in(self, namespace: str) -> tuple[Right, ...]:
        """Return the rights of a release. namespace: of that."""
        return tuple(
            (
                dataclasses.replace(right, namespace=namespace)
                if right.namespace == self.role_namespace
                else right
            )
            for right in self.rights
        )


class ServedVersion(msgspec.Struct, frozen=True):
    """One version of a CRD."""

    name: str = ""
    served: bool = False


class DefinitionSpec(msgspec.Struct, frozen=True):
    """The versions of a CRD."""

    versions: tuple[ServedVersion, ...] = ()


class CustomDefinition(msgspec.Struct, frozen=True):
    """A CRD, as far as contracts concern it."""

    metadata: objects.ObjectMeta
    spec: DefinitionSpec = DefinitionSpec()

    def serves(self, version: str) -> bool:
        """Report whether a version is served."""
        return ServedVersion(version, served=True) in self.spec.versions


@dataclasses.dataclass(frozen=True, slots=True)
class MachineApi:
    """What a cluster has. definitions: by name of the CRD; None: not found.

    installed: the provider's workloads. gaps: rights that the account of one lacks, by
    account; a failure where that could not be read. extensions: of Cluster API. held:
    objects of the provider with finalizers of others.
    """

    definitions: Mapping[str, CustomDefinition | None]
    installed: tuple[components.Component, ...] = ()
    gaps: Mapping[str, tuple[Right, ...] | ReadFailure] = dataclasses.field(
        default_factory=dict
    )
    extensions: tuple[RuntimeExtension, ...] = ()
    held: tuple[HeldObject, ...] = ()


def name_of(kind: resources.Resource) -> str:
    """Return the name of the CRD of a kind."""
    return f"{kind.plural}.{kind.group}"


def account_of(component: components.Component) -> DaemonAccount:
    """Return the ServiceAccount that the chart creates for a component."""
    return DaemonAccount(component.namespace, component.name)


def definitions(
    api: client.Api, expected: MachineProvider, timeout_s: float
) -> Mapping[str, CustomDefinition | None]:
    """Read the CRDs of core and provider, one call each.

    Raises:
        KubeError: they cannot be read.
    """
    return definitions_of(api, (*expected.core, *expected.definitions), timeout_s)


def definitions_of(
    api: client.Api, kinds: Iterable[resources.Resource], timeout_s: float
) -> Mapping[str, CustomDefinition | None]:
    """Read the CRDs of kinds, one call each. timeout_s: of each.

    Raises:
        KubeError: they cannot be read.
    """
    names = map(name_of, kinds)
    return {name: _definition(api, name, timeout_s) for name in names}


def _definition(
    api: client.Api, name: str, timeout_s: float
) -> CustomDefinition | None:
    try:
        body = api.read(resources.DEFINITIONS, name, None, timeout_s=timeout_s)
    except errors.NotFound:
        return None
    return decoding.decode(body, CustomDefinition)


# ---------------------------------------------------------------- results: pure


def results(
    expected: MachineProvider, read: Read[MachineApi] | ReadFailure
) -> tuple[CheckResult, ...]:
    """Return the lines of this check."""
    if isinstance(read, ReadFailure):
        return (CheckResult(CHECK, CheckState.SKIPPED, read.text),)
    cluster = read.value
    if not any(cluster.definitions.values()) and not cluster.installed:
        text = f"skipped: neither Cluster API nor {expected.component} is installed"
        return (CheckResult(CHECK, CheckState.SKIPPED, text),)
    lines = (
        *_of_core(expected, cluster),
        *_of_provider(expected, cluster),
        *_of_contracts(expected, cluster),
    )
    if not lines:
        versions = sorted({kind.version for kind in expected.core})
        contracts = ", ".join(sorted(expected.contracts))
        text = (
            f"Cluster API serves {', '.join(versions)}; {len(expected.definitions)}"
            f" CRDs with {contracts}"
        )
        lines = (CheckResult(CHECK, CheckState.OK, text),)
    return (
        *lines,
        *_of_others(cluster),
        *_of_release(expected, cluster),
        *_of_rights(expected, cluster),
    )


def _of_others(cluster: MachineApi) -> Iterator[CheckResult]:
    for text, remedy in runtime_extensions.without_endpoints(cluster.extensions):
        yield _failed(text, remedy)
    for text, remedy in runtime_extensions.foreign(cluster.held):
        yield CheckResult(CHECK, CheckState.WARNING, text, remedy)


def _failed(text: str, remedy: str) -> CheckResult:
    return CheckResult(CHECK, CheckState.FAILED, text, remedy)


def _of_core(expected: MachineProvider, cluster: MachineApi) -> Iterator[CheckResult]:
    remedy = f"install a release of Cluster API that {expected.component} supports"
    for text in unserved(expected.core, cluster.definitions):
        yield _failed(text, remedy)


def _of_provider(
    expected: MachineProvider, cluster: MachineApi
) -> Iterator[CheckResult]:
    for text in unserved(expected.definitions, cluster.definitions):
        yield _failed(text, _REMEDY_CRD)


def unserved(
    kinds: Iterable[resources.Resource],
    definitions: Mapping[str, CustomDefinition | None],
) -> Iterator[str]:
    """Yield a sentence for each kind of which the version is not served."""
    for kind in kinds:
        name = name_of(kind)
        definition = definitions.get(name)
        if definition is None:
            yield f"CRD {name}: not found"
        elif not definition.serves(kind.version):
            served = [row.name for row in definition.spec.versions if row.served]
            versions = ", ".join(served) or "none"
            yield f"CRD {name}: served versions {versions}: must include {kind.version}"


def _of_contracts(
    expected: MachineProvider, cluster: MachineApi
) -> Iterator[CheckResult]:
    """Yield labels without which the core does not find the provider's version."""
    for kind in expected.definitions:
        definition = cluster.definitions.get(name_of(kind))
        if definition is None:
            continue
        for label, version in expected.contracts.items():
            value = definition.metadata.labels.get(label, "")
            if version not in value.split("_"):
                text = f'CRD {name_of(kind)}: label {label} is "{value}"'
                yield _failed(f'{text}: must contain "{version}"', _REMEDY_CRD)


def _of_release(
    expected: MachineProvider, cluster: MachineApi
) -> Iterator[CheckResult]:
    name = expected.component
    if not cluster.installed:
        text = f"{name}: no Deployment with the label {components.LABEL}={name}"
        remedy = f"install the chart {name}, or ignore this where it runs elsewhere"
        yield CheckResult(CHECK, CheckState.WARNING, text, remedy)
    for component in cluster.installed:
        where = f"{component.namespace}/{component.object_name}"
        text = f"{name} {component.version or 'of an unknown version'} runs as {where}"
        yield CheckResult(CHECK, CheckState.OK, text)
    if len(cluster.installed) > 1:
        yield _failed(
            f"{len(cluster.installed)} releases of {name}",
            "keep one release for each cluster",
        )


def _of_rights(expected: MachineProvider, cluster: MachineApi) -> Iterator[CheckResult]:
    for account, gaps in cluster.gaps.items():
        if isinstance(gaps, ReadFailure):
            yield CheckResult(CHECK, CheckState.SKIPPED, f"{account}: {gaps.text}")
        elif gaps:
            remedy = f"apply the roles of the chart {expected.component}"
            for gap in gaps:
                yield _failed(f"{account} cannot {gap}", remedy)
        else:
            text = f"{account} has all {len(expected.rights)} permissions of the chart"
            yield CheckResult(CHECK, CheckState.OK, text)
