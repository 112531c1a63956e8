"""Releases, leftovers, differences and steps of a migration from Rockoon."""

import dataclasses
from collections.abc import Sequence

import msgspec

from lib.helm import errors as helm_errors
from lib.helm import releases
from lib.kube import client, listing, objects, resources
from lib.migration.osdpl import fates, rockoon_differences, rockoon_leftovers
from lib.migration.osdpl.fates import Fate, Installed, Row
from lib.migration.osdpl.rockoon_leftovers import RockoonLeftovers


class _Spec(msgspec.Struct, frozen=True):
    openstack_version: str = ""


class _Deployment(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _Spec = _Spec()


@dataclasses.dataclass(frozen=True, slots=True)
class RockoonChangeover:
    """Migration of one OpenStackDeployment. openstack: its version."""

    namespace: str
    name: str
    openstack: str
    rows: tuple[Row, ...]
    leftovers: RockoonLeftovers
    steps: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def differences(self) -> Sequence[rockoon_differences.RockoonDifference]:
        """What a running cloud notices."""
        return rockoon_differences.DIFFERENCES


def read(
    api: client.Api,
    namespace: str,
    supported: tuple[str, ...],
    own_label: str,
    timeout_s: float,
) -> RockoonChangeover | None:
    """Read a namespace; None: it has no OpenStackDeployment.

    supported: versions of OpenStack. own_label: on the Secrets of releases that
    osdpl-controller installed. timeout_s: for each page.

    Raises:
        KubeError: a list cannot be read.
    """
    listed = rockoon_leftovers.listed(
        api, resources.OPENSTACK_DEPLOYMENTS, _Deployment, timeout_s, namespace
    )
    if not listed:
        return None
    first = min(listed, key=_age)
    version = first.spec.openstack_version
    rows = tuple(
        fates.judge(installed, version, supported)
        for installed in _installed(api, namespace, own_label, timeout_s)
    )
    left = rockoon_leftovers.read(api, timeout_s)
    name = first.metadata.name
    return RockoonChangeover(
        namespace, name, version, rows, left, _steps(namespace, name, rows, left)
    )


def _age(row: _Deployment) -> tuple[str, str]:
    """Sort the oldest object first: it is served."""
    return str(row.metadata.creation_timestamp), row.metadata.name


def _installed(
    api: client.Api, namespace: str, own_label: str, timeout_s: float
) -> list[Installed]:
    """Return the newest revision of each release, by name."""
    secrets = listing.read(
        api,
        resources.SECRETS,
        releases.Secret,
        timeout_s=timeout_s,
        namespace=namespace,
        selectors={"labelSelector": releases.SELECTOR},
    ).items
    newest = releases.latest(secret.metadata for secret in secrets)
    by_name = {secret.metadata.name: secret for secret in secrets}
    rows = []
    for _, revision in sorted(newest.items()):
        try:
            release = releases.decode(by_name[revision.secret_name])
            chart, version = release.chart, release.chart_version
        except helm_errors.MalformedRelease:
            chart = version = ""
        rows.append(
            Installed(revision.name, chart, version, own_label in revision.labels)
        )
    return rows


def _steps(
    namespace: str, name: str, rows: Sequence[Row], left: RockoonLeftovers
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return titles with the commands of each."""
    steps: list[tuple[str, tuple[str, ...]]] = [
        (
            "Fields without effect, refused services and rules",
            (f"mooring plan osdpl --namespace {namespace}",),
        )
    ]
    if left.programs:
        steps.append(("Stop Rockoon", tuple(map(_stop, left.programs))))
    steps += [
        (
            "Update the CustomResourceDefinitions, which helm does not",
            ("kubectl apply -f charts/osdpl-controller/crds",),
        ),
        (
            "Label each Secret that the spec refers to",
            (
                f"kubectl -n {namespace} label secret NAME"
                " openstack.lcm.mirantis.com/osdpl_secret=true",
            ),
        ),
        ("Install the chart osdpl-controller", ()),
    ]
    adopt = [row.release for row in rows if row.fate in (Fate.REBUILT, Fate.ADOPTED)]
    if adopt:
        steps.append(
            (
                "Adopt release by release, the state stores first",
                tuple(
                    f"kubectl -n {namespace} annotate --overwrite osdpl {name}"
                    f" mooring.io/adopt={release}"
                    for release in sorted(adopt, key=_order)
                ),
            )
        )
    if left.objects or left.programs:
        steps.append(
            (
                "Delete the stopped Deployments, and what Rockoon left",
                (
                    *(
                        f"kubectl -n {place.replace('/', ' delete deployment ')}"
                        for place, _ in left.programs
                    ),
                    f"mooring migrate osdpl --namespace {namespace} --remove-leftovers",
                ),
            )
        )
    return tuple(steps)


def _stop(program: tuple[str, int]) -> str:
    namespace, _, name = program[0].partition("/")
    return f"kubectl -n {namespace} scale deployment {name} --replicas=0"


def _order(release: str) -> tuple[bool, str]:
    """Sort state stores before programs."""
    return (fates.FATES[release][0] is not Fate.REBUILT, release)
