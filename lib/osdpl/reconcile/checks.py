"""What a cluster must allow before anything is installed.

A check that has passed is not repeated by this process.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from lib.helm import command
from lib.helm import errors as helm_errors
from lib.kube import client, errors, objects, resources
from lib.osdpl.reconcile import bundles, caches
from lib.osdpl.reconcile.snapshot import Blocker, Refused
from lib.process import decoding

TIMEOUT_S = 10.0
REFUSED_S = 30.0
"""For this long a write that was refused is reported; then it is tried again."""
ROCKOON, ROCKOON_NAMESPACE = "rockoon", "osh-system"
"""Deployment of the reference, and its namespace. Source: its chart and settings."""
_DEPLOYMENTS = resources.OPENSTACK_DEPLOYMENTS
LEVEL = "pod-security.kubernetes.io/enforce"

_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "osdpl-controller-check"},
    "spec": {
        "hostNetwork": True,
        "hostPID": True,
        "containers": [
            {
                "name": "check",
                "image": "osdpl-controller-check",
                "securityContext": {"privileged": True},
            }
        ],
    },
}
"""As the pods of libvirt and nova-compute; it is only offered, never created."""


class Checks:
    """The checks of one namespace. Safe to use from several threads."""

    def __init__(
        self,
        api: client.Api,
        helm: command.Helm,
        kept: caches.Caches,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._helm = helm
        self._caches = kept
        self._clock = clock
        self._passed: set[str] = set()
        self._refused: tuple[float, Blocker] | None = None

    def blockers(self) -> tuple[Blocker, ...]:
        """Return the reasons why nothing can be installed now."""
        results = [
            self._once("helm", self._helm_is_usable),
            self._once("definition", self._definition_is_owned),
            self._once("pod security", self._pods_are_allowed),
            self._permitted(),
        ]
        return tuple(blocker for blocker in results if blocker is not None)

    def unlisted(self) -> tuple[Blocker, ...]:
        """Return why a kind is not listed yet; empty: all are."""
        blocker = self._once("caches", self._caches_are_filled)
        return () if blocker is None else (blocker,)

    def refused(self, blocker: Blocker) -> None:
        """Note why the API server has refused a write that others depend on."""
        self._refused = (self._clock() + REFUSED_S, blocker)

    def exists(self, key: str) -> bool:
        """Report whether an OpenStackDeployment exists; unknown: it does.

        Kopf may miss a deletion; see lib/operator_edge/objects.py.
        """
        namespace, _, name = key.partition("/")
        try:
            self._api.read(_DEPLOYMENTS, name, namespace, timeout_s=TIMEOUT_S)
        except errors.NotFound:
            return False
        except errors.KubeError:
            return True
        return True

    def is_reference_absent(self) -> bool:
        """Report whether the reference's Deployment does not exist; unknown: no."""
        try:
            self._api.read(
                resources.DEPLOYMENTS, ROCKOON, ROCKOON_NAMESPACE, timeout_s=TIMEOUT_S
            )
        except errors.NotFound:
            return True
        except errors.KubeError:
            return False
        return False

    def deletion(self) -> tuple[tuple[Blocker, ...], bool]:
        """Return why a deletion must wait, and whether the definition is deleted.

        The API server deletes all objects of a CustomResourceDefinition with it.
        """
        name = f"{_DEPLOYMENTS.plural}.{_DEPLOYMENTS.group}"
        try:
            body = self._api.read(resources.DEFINITIONS, name, timeout_s=TIMEOUT_S)
        except errors.NotFound:
            return (), True
        except errors.KubeError as error:
            return (_of_error(error, f"CustomResourceDefinition {name}"),), False
        definition = decoding.decode(body, objects.Bare)
        return (), definition.metadata.deletion_timestamp is not None

    def _permitted(self) -> Blocker | None:
        if self._refused is None or self._clock() >= self._refused[0]:
            return None
        return self._refused[1]

    def _once(self, name: str, check: Callable[[], Blocker | None]) -> Blocker | None:
        if name in self._passed:
            return None
        blocker = check()
        if blocker is None:
            self._passed.add(name)
        return blocker

    def _helm_is_usable(self) -> Blocker | None:
        try:
            self._helm.check(threading.Event())
        except helm_errors.HelmError as error:
            return Blocker(Refused.HELM_UNUSABLE, str(error))
        return None

    def _definition_is_owned(self) -> Blocker | None:
        name = f"{resources.HELM_BUNDLES.plural}.{resources.HELM_BUNDLES.group}"
        try:
            body = self._api.read(resources.DEFINITIONS, name, timeout_s=TIMEOUT_S)
        except errors.KubeError as error:
            return _of_error(error, f"CustomResourceDefinition {name}")
        if bundles.is_owned(msgspec.json.decode(body)):  # noqa: TID251 # no type
            return None
        words = (
            f"CustomResourceDefinition {name}: conflict: the label"
            f" {bundles.MANAGED_BY}={bundles.MANAGER} is not set: it is owned by"
            " another controller"
        )
        return Blocker(Refused.HELM_BUNDLE_NOT_OWNED, words)

    def _pods_are_allowed(self) -> Blocker | None:
        return pods_refused(self._api, self._caches.namespace)

    def _caches_are_filled(self) -> Blocker | None:
        """Explain why a kind is not listed."""
        for resource, kept in self._caches.all():
            if kept.synced.is_set():
                continue
            try:
                self._api.list_page(
                    resource,
                    self._caches.namespace,
                    query={"limit": "1"},
                    timeout_s=TIMEOUT_S,
                )
            except errors.KubeError as error:
                return _of_error(error, f"{resource.plural}")
            return Blocker(Refused.UNKNOWN, f"{resource.plural}: not listed yet")
        return None


def pods_refused(api: client.Api, namespace: str) -> Blocker | None:
    """Return why privileged pods are refused in a namespace; None: they are allowed."""
    try:
        api.create(
            resources.PODS,
            msgspec.json.encode(_POD),
            namespace,
            query={"dryRun": "All"},
            timeout_s=TIMEOUT_S,
        )
    except errors.NotFound:
        words = f"namespace {namespace}: not found"
        return Blocker(Refused.NAMESPACE_MISSING, words)
    except errors.Forbidden as error:
        if "PodSecurity" not in error.message:
            return _of_error(error, f"pods in namespace {namespace}")
        words = (
            f"namespace {namespace}: label {LEVEL}=privileged: not set: pods with"
            " the host's network and PIDs, such as libvirt's, are not allowed"
        )
        return Blocker(Refused.POD_SECURITY, words)
    except errors.KubeError as error:
        return _of_error(error, f"pods in namespace {namespace}")
    return None


def _of_error(error: errors.KubeError, thing: str) -> Blocker:
    if isinstance(error, errors.Forbidden):
        words = f"{thing}: permission denied: {error}"
        return Blocker(Refused.FORBIDDEN, words)
    return Blocker(Refused.UNKNOWN, f"{thing}: {error}")
