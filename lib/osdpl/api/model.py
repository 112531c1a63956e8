"""Types of the OpenStack operator: the object, its charts and its helm releases."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from lib.process import config

GROUP = "lcm.mirantis.com"
VERSION = "v1alpha1"

Document = Mapping[str, Any]
"""Object of Kubernetes, as the API server sends it."""
Tree = dict[str, Any]
"""JSON object: a spec or the values of a chart."""


class Kind(enum.StrEnum):
    """Kinds of workloads whose readiness opens a gate."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


class Reason(enum.StrEnum):
    """Why a service is not rendered."""

    UNSUPPORTED = "Unsupported"
    REQUIRES_CEPH = "RequiresCeph"
    INVALID_VALUES = "InvalidValues"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Reference:
    """Reference of the spec to a key of a Secret (value_from.secret_key_ref)."""

    path: str
    secret: str
    key: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """OpenStackDeployment object; its spec may hold secrets and is not printed."""

    name: str
    namespace: str
    uid: str
    generation: int
    is_draft: bool
    spec: Tree = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Workload:
    """Workload of a release, in the namespace of the OpenStackDeployment."""

    kind: Kind
    name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Source of charts: HTTP repository, OCI registry (oci://) or directory."""

    name: str
    url: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChartRef:
    """Chart of a release; digest: "sha256:<hex>" when the spec pins one."""

    repository: Source
    name: str
    version: str
    digest: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Desired helm release; its values hold passwords and are not printed.

    gates: workloads of other releases that must be Ready before helm is run.
    openstack_version: of the spec that it is made from. images_base: registry of the
    images that only the chart names; empty: that of the chart. contents: digest of the
    values as helm records them; empty: not known.
    """

    name: str
    chart: ChartRef
    namespace: str
    service: str
    values: Tree = dataclasses.field(repr=False)
    gates: tuple[Workload, ...] = ()
    openstack_version: str = ""
    images_base: str = ""
    contents: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Releases of one service; the name is that of its HelmBundle object."""

    name: str
    service: str
    releases: tuple[Release, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Service that can't be rendered; the other services are not affected."""

    service: str
    reason: Reason
    problems: tuple[config.FieldProblem, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Desired releases.

    fingerprint: SHA-256 of the effective spec. ignored: a text per field of the spec
    that has no effect, with its path. defaults: texts about defaults of the reference's
    presets that are not applied.
    """

    bundles: tuple[Bundle, ...]
    refusals: tuple[Refusal, ...]
    openstack_version: str
    fingerprint: str
    ignored: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
