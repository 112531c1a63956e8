"""What the reference leaves when it is stopped, and how it is removed.

A webhook configuration without its program refuses every write; a finalizer without
its controller keeps an object for ever; peerings have no effect any more.
"""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from lib.kube import client, errors, listing, objects, resources
from lib.kube.resources import Resource
from lib.osdpl.reconcile import snapshot
from lib.process import decoding

GROUP = "lcm.mirantis.com"
PREFIX = "rockoon"
_WORD = f"{PREFIX}."
"""Begin of the modules that the reference's containers run, and of its peerings."""
_FINALIZED = (
    resources.OPENSTACK_DEPLOYMENTS,
    resources.OPENSTACK_DEPLOYMENT_STATUSES,
)
PEERINGS = tuple(
    Resource(group, "v1", plural, kind, is_namespaced)
    for group in ("kopf.dev", "zalando.org")
    for plural, kind, is_namespaced in (
        ("kopfpeerings", "KopfPeering", True),
        ("clusterkopfpeerings", "ClusterKopfPeering", False),
    )
)
"""Kinds of peerings. Source: Kopf, docs/peering.rst."""

T = TypeVar("T", bound=objects.HasMetadata)


class _Container(msgspec.Struct, frozen=True):
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(msgspec.Struct, frozen=True):
    replicas: int = 1
    template: _Template = _Template()


class _Deployment(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _DeploymentSpec = _DeploymentSpec()


class _Rule(msgspec.Struct, frozen=True, rename="camel"):
    api_groups: tuple[str, ...] = ()


class _Service(msgspec.Struct, frozen=True):
    name: str = ""


class _ClientConfig(msgspec.Struct, frozen=True):
    service: _Service = _Service()


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    rules: tuple[_Rule, ...] = ()
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    webhooks: tuple[_Webhook, ...] = ()


class _Bare(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta


@dataclasses.dataclass(frozen=True, slots=True)
class RockoonLeftover:
    """Object of the reference. finalizers: the object stays, and loses these."""

    kind: Resource
    namespace: str
    name: str
    uid: str
    resource_version: str
    effect: str
    finalizers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return kind and name, as in messages."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.kind} {place}{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class RockoonLeftovers:
    """programs: Deployments of the reference, with their replicas."""

    programs: tuple[tuple[str, int], ...]
    objects: tuple[RockoonLeftover, ...]


def read(api: client.Api, timeout_s: float) -> RockoonLeftovers:
    """Read what the reference runs and what it left. timeout_s: for each page.

    Raises:
        KubeError: a list cannot be read.
    """
    rows = (*_webhooks(api, timeout_s), *_peerings(api, timeout_s))
    return RockoonLeftovers(
        programs(api, timeout_s), (*rows, *_finalizers(api, timeout_s))
    )


def programs(api: client.Api, timeout_s: float) -> tuple[tuple[str, int], ...]:
    """Return the Deployments that run the reference, and their replicas.

    Raises:
        KubeError: they cannot be listed.
    """
    return tuple(
        (f"{row.metadata.namespace}/{row.metadata.name}", row.spec.replicas)
        for row in listed(api, resources.DEPLOYMENTS, _Deployment, timeout_s)
        if _is_reference(row)
    )


def _is_reference(row: _Deployment) -> bool:
    words = [
        word
        for container in row.spec.template.spec.containers
        for word in (*container.command, *container.args)
    ]
    return row.metadata.name == PREFIX or any(_WORD in word for word in words)


def _webhooks(api: client.Api, timeout_s: float) -> Iterator[RockoonLeftover]:
    kind = resources.VALIDATING_WEBHOOKS
    for row in listed(api, kind, _Configuration, timeout_s):
        groups = {
            group
            for webhook in row.webhooks
            for rule in webhook.rules
            for group in rule.api_groups
        }
        # Policy engines have webhooks for these objects, too.
        names = [webhook.client_config.service.name for webhook in row.webhooks]
        is_rockoon = any(PREFIX in name for name in (row.metadata.name, *names))
        if GROUP in groups and is_rockoon:
            yield _leftover(kind, row.metadata, "refuses every write without Rockoon")


def _peerings(api: client.Api, timeout_s: float) -> Iterator[RockoonLeftover]:
    for kind in PEERINGS:
        for row in listed(api, kind, _Bare, timeout_s):
            if row.metadata.name.startswith(PREFIX):
                yield _leftover(kind, row.metadata, "has no effect any more")


def _finalizers(api: client.Api, timeout_s: float) -> Iterator[RockoonLeftover]:
    for kind in _FINALIZED:
        for row in listed(api, kind, _Bare, timeout_s):
            about = {"finalizers": list(row.metadata.finalizers)}
            left = snapshot.reference_finalizers({"metadata": about})
            if left:
                text = f"is kept by the finalizers {', '.join(left)}"
                yield dataclasses.replace(
                    _leftover(kind, row.metadata, text), finalizers=left
                )


def _leftover(
    kind: Resource, about: objects.ObjectMeta, effect: str
) -> RockoonLeftover:
    return RockoonLeftover(
        kind, about.namespace, about.name, about.uid, about.resource_version, effect
    )


def listed(
    api: client.Api,
    kind: Resource,
    of: type[T],
    timeout_s: float,
    namespace: str | None = None,
) -> Sequence[T]:
    """Return the objects of a kind, in one namespace or all; none if it is not served.

    Raises:
        KubeError: they cannot be listed.
    """
    try:
        return listing.read(
            api, kind, of, timeout_s=timeout_s, namespace=namespace
        ).items
    except errors.NotFound:
        return ()  # the kind is not served


def remove(api: client.Api, leftover: RockoonLeftover, timeout_s: float) -> None:
    """Delete an object, or its finalizers, upon exactly what was read.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    namespace = leftover.namespace or None
    if not leftover.finalizers:
        conditions = {"preconditions": {"uid": leftover.uid}}
        try:
            api.delete(
                leftover.kind,
                leftover.name,
                namespace,
                body=json.dumps(conditions).encode(),
                timeout_s=timeout_s,
            )
        except errors.NotFound:
            return
        return
    body = api.read(leftover.kind, leftover.name, namespace, timeout_s=timeout_s)
    about = decoding.decode(body, _Bare).metadata
    kept = [name for name in about.finalizers if name not in leftover.finalizers]
    metadata = {"resourceVersion": about.resource_version, "finalizers": kept}
    api.patch(
        leftover.kind,
        leftover.name,
        json.dumps({"metadata": metadata}).encode(),
        namespace,
        timeout_s=timeout_s,
    )
