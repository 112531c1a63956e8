"""The kinds of objects the daemons touch, and the paths they live under."""

import dataclasses
import urllib.parse


@dataclasses.dataclass(frozen=True, slots=True)
class Resource:
    """One kind, as the API server serves it.

    group: empty for the core group. plural: the word in the path.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """What an object's apiVersion field holds."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Return the path of one object, or of the collection when `name` is None.

        namespace None means all namespaces, which only a collection has.

        Raises:
            ValueError: namespace and kind don't go together.
        """
        if not self.namespaced and namespace is not None:
            raise ValueError(f"{self.plural} have no namespace")
        if self.namespaced and namespace is None and name is not None:
            raise ValueError(f"{self.plural} {name!r} needs a namespace")
        parts = ["apis", self.group] if self.group else ["api"]
        parts.append(self.version)
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


@dataclasses.dataclass(frozen=True, slots=True)
class ResourcePath:
    """What a path points to; plural is empty for paths of no resource (/readyz)."""

    group: str = ""
    version: str = ""
    namespace: str | None = None
    plural: str = ""
    name: str | None = None
    subresource: str | None = None


def parse(path: str) -> ResourcePath:
    """Return what a path points to; the reverse of `Resource.path`.

    Source: Kubernetes API concepts, resource URIs.
    """
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, *rest = "", *parts[1:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, *rest = parts[1:]
    else:
        return ResourcePath()
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACE:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *_ = (*rest, None, None)
    return ResourcePath(group, version, namespace, plural or "", name, subresource)


_OF_NAMESPACE = ("status", "finalize")
"""Subresources of a Namespace itself; any other word there is a plural."""

NODES = Resource("", "v1", "nodes", "Node", False)
EVENTS = Resource("", "v1", "events", "Event", True)
SECRETS = Resource("", "v1", "secrets", "Secret", True)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
SERVICES = Resource("", "v1", "services", "Service", True)
ENDPOINT_SLICES = Resource(
    "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True
)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)

PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
STORAGE_CLASSES = Resource(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", False
)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False)
VOLUME_ATTACHMENTS = Resource(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False
)
INSTANCE_TYPES_CATALOGS = Resource(
    "deckhouse.io",
    "v1alpha1",
    "instancetypescatalogs",
    "InstanceTypesCatalog",
    False,
)

PODS = Resource("", "v1", "pods", "Pod", True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
JOBS = Resource("batch", "v1", "jobs", "Job", True)
DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
)

_LCM = "lcm.mirantis.com"
OPENSTACK_DEPLOYMENTS = Resource(
    _LCM, "v1alpha1", "openstackdeployments", "OpenStackDeployment", True
)
OPENSTACK_DEPLOYMENT_STATUSES = Resource(
    _LCM,
    "v1alpha1",
    "openstackdeploymentstatus",
    "OpenStackDeploymentStatus",
    True,
)
HELM_BUNDLES = Resource(_LCM, "v1alpha1", "helmbundles", "HelmBundle", True)

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)

_RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
ROLES = Resource(_RBAC, "v1", "roles", "Role", True)
ROLE_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding", True)

VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)
TOKEN_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    False,
)
