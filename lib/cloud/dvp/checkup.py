"""What a parent reports of itself: its user, its project, and the kinds it serves.

Implements `lib.cloud.checkup.Checkup`. One call each, nothing is tried twice.
"""

import base64
import datetime
from collections.abc import Sequence

import msgspec

from lib.cloud import checkup, errors
from lib.cloud.dvp import config, kinds, needs, refusals, served_versions
from lib.kube import client, greeting, listing, objects, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.process import decoding

_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False
)
_NEEDED = (kinds.VIRTUAL_MACHINES.resource,)
_USED = (
    *_NEEDED,
    kinds.VIRTUAL_DISKS.resource,
    kinds.DISK_ATTACHMENTS.resource,
    resources.SERVICES,
    kinds.HEALTHCHECKED_SERVICES.resource,
    resources.STORAGE_CLASSES,
)
"""Every kind that some component reads."""
_OFFERED = (
    resources.STORAGE_CLASSES,
    kinds.MACHINE_CLASSES.resource,
    kinds.CLUSTER_IMAGES.resource,
    kinds.VIRTUAL_IMAGES.resource,
)
"""Kinds that objects of a child name."""

REMEDIES = checkup.Remedies(
    credentials=(
        "write a kubeconfig with a valid token or certificate; a token may have expired"
    ),
    unreachable=(
        "see that the server in the parent's kubeconfig is right and can be reached"
        " from here: name, port, proxy, certificate"
    ),
    project="set DVP_NAMESPACE to the namespace of the project",
    endpoint="see that the virtualization module is enabled in the parent",
    internal="",
    region="",
    no_region="",
    mixed="",
)
"""What an operator does about faults."""


class _Named(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _ReviewStatus(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


class _Access(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _Access = _Access()


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


class ParentCheckup:
    """Asks one parent."""

    region = ""
    warnings: tuple[str, ...] = ()

    def __init__(self, settings: config.ParentConfig, timeout_s: float) -> None:
        """timeout_s: of every single call."""
        self._settings = settings
        self._timeout_s = timeout_s
        self._api = served_versions.ServedVersions(
            client.KubeClient(settings.connection, user_agent="mooring-doctor")
        )

    def time(self) -> datetime.datetime | None:
        """See the protocol: the Date of an answer without authentication."""
        try:
            return greeting.ask(self._settings.connection, self._timeout_s).at
        except kube_errors.KubeError as error:
            raise refusals.error(error, "reach the parent", "", "") from error

    def login(self) -> checkup.Login:
        """See the protocol: the parent names the user of the credentials."""
        body = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
        try:
            answer = self._api.create(
                _REVIEWS, msgspec.json.encode(body), timeout_s=self._timeout_s
            )
        except kube_errors.KubeError as error:
            raise refusals.error(error, "authenticate", _REVIEWS.plural, "") from error
        return checkup.Login(
            decoding.decode(answer, _Review).status.user_info.username,
            self._settings.namespace,
            expiry(self._settings.connection.authorization or ""),
        )

    def services(self) -> tuple[checkup.ServiceEndpoint, ...]:
        """See the protocol: one object of each kind is listed."""
        return tuple(map(self._served, _USED))

    def _served(self, resource: Resource) -> checkup.ServiceEndpoint:
        namespace = self._settings.namespace if resource.namespaced else None
        endpoint = checkup.ServiceEndpoint(
            resource.plural,
            resource in _NEEDED,
            url=self._settings.connection.host + resource.path(namespace),
            version=resource.api_version,
        )
        try:
            self._api.list_page(
                resource, namespace, query={"limit": "1"}, timeout_s=self._timeout_s
            )
        except kube_errors.NotFound:
            return checkup.ServiceEndpoint(resource.plural, resource in _NEEDED)
        except kube_errors.KubeError as error:
            operation = f"list {resource.plural}"
            failure = refusals.error(error, operation, resource.plural, "")
            return _failed(endpoint, failure)
        return endpoint

    def quotas(self) -> checkup.Quotas:
        """See the protocol: users of a project may not read its quotas."""
        return {}

    def balancing(self) -> checkup.Balancing | None:
        """See the protocol: Services of the parent name no object of it."""
        return checkup.Balancing(resources.SERVICES.version)

    def rights(self) -> tuple[checkup.ComponentRights, ...]:
        """See the protocol: one review of the parent for each right."""
        asked: dict[tuple[Resource, str], bool] = {}
        return tuple(
            self._rights_of(component, component_needs, asked)
            for component, component_needs in needs.COMPONENTS.items()
        )

    def _rights_of(
        self,
        component: str,
        component_needs: Sequence[needs.Need],
        asked: dict[tuple[Resource, str], bool],
    ) -> checkup.ComponentRights:
        count, missing = 0, []
        for need in component_needs:
            if need.is_optional and not self._serves(need.resource):
                continue
            count += len(need.verbs)
            for right in ((need.resource, verb) for verb in need.verbs):
                if right not in asked:
                    asked[right] = self._has(*right)
            verbs = [verb for verb in need.verbs if not asked[need.resource, verb]]
            missing += [self._named(need.resource, verbs)] if verbs else []
        is_manager = component == needs.MANAGER
        return checkup.ComponentRights(component, is_manager, count, tuple(missing))

    def _serves(self, resource: Resource) -> bool:
        path = f"/apis/{resource.group}/{resource.version}"
        try:
            self._api.request("GET", path, timeout_s=self._timeout_s)
        except kube_errors.NotFound:
            return False
        except kube_errors.KubeError as error:
            operation = f"discover {resource.plural}"
            raise refusals.error(error, operation, resource.plural, "") from error
        return True

    def _has(self, resource: Resource, verb: str) -> bool:
        """Ask whether the credentials have a right.

        Source: Kubernetes authorization/v1 SelfSubjectAccessReview.
        """
        kind = resources.SELF_SUBJECT_ACCESS_REVIEWS
        namespace = self._settings.namespace if resource.namespaced else ""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "resource": resource.plural,
            "namespace": namespace,
        }
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = self._api.create(
                kind, msgspec.json.encode(body), timeout_s=self._timeout_s
            )
        except kube_errors.KubeError as error:
            raise refusals.error(error, "review rights", kind.plural, "") from error
        return decoding.decode(answer, _AccessReview).status.allowed

    def _named(self, resource: Resource, verbs: Sequence[str]) -> str:
        what = f"{', '.join(verbs)} {resource.plural}"
        if not resource.namespaced:
            return f"{what} of the parent"
        return f"{what} in namespace {self._settings.namespace}"

    def offered(self) -> checkup.Offered:
        """See the protocol: classes and images, a list of each kind."""
        return {kind.kind: self._names(kind) for kind in _OFFERED}

    def _names(self, kind: Resource) -> tuple[str, ...] | errors.CloudError:
        namespace = self._settings.namespace if kind.namespaced else None
        try:
            listed = listing.read(
                self._api,
                kind,
                _Named,
                timeout_s=self._timeout_s,
                namespace=namespace,
            )
        except kube_errors.KubeError as error:
            return refusals.error(error, f"list {kind.plural}", kind.plural, "")
        return tuple(sorted(item.metadata.name for item in listed.items))

    def routing(self) -> checkup.Routing | None:
        """See the protocol: there are no routes."""
        return None


def _failed(
    endpoint: checkup.ServiceEndpoint, error: errors.CloudError
) -> checkup.ServiceEndpoint:
    return checkup.ServiceEndpoint(
        endpoint.kind, endpoint.needed, url=endpoint.url, error=error
    )


def expiry(authorization: str) -> datetime.datetime | None:
    """Return when the token of a header expires; None: not reported.

    Source: RFC 7519, 4.1.4 (exp). The signature is the parent's to check.
    """
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = decoding.decode(base64.urlsafe_b64decode(padded), _Claims)
        if claims.exp is None:
            return None
        return datetime.datetime.fromtimestamp(claims.exp, datetime.UTC)
    except (msgspec.DecodeError, ValueError, OverflowError, OSError):
        return None  # no such document, or a time that no calendar has
