"""What `mooring lab osdpl` shows: one row per release of the OpenStackDeployment."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import rich.table

from lib.helm import model, releases
from lib.kube import client, objects, resources
from lib.kube.resources import Resource
from lib.lab.osdpl import deployment

TIMEOUT_S = 30.0
_OWNER = "meta.helm.sh/release-name"
WORKLOADS = tuple(
    Resource("apps", "v1", f"{kind.lower()}s", kind, True)
    for kind in ("Deployment", "StatefulSet", "DaemonSet")
)
"""Kinds of workloads."""

Json = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload of a release. ready, desired: pods."""

    kind: str
    name: str
    release: str
    ready: int
    desired: int
    is_current: bool

    @property
    def is_ready(self) -> bool:
        """Whether all its pods are of the current generation and Ready."""
        return self.is_current and self.ready == self.desired


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One release. state: of the release Secret, as helm has it; empty: none yet."""

    service: str
    release: str
    chart: str
    revision: int
    state: str
    workloads: tuple[WorkloadView, ...]
    waiting_for: str

    @property
    def ready(self) -> int:
        """Number of workloads that are Ready."""
        return sum(workload.is_ready for workload in self.workloads)

    @property
    def is_complete(self) -> bool:
        """Whether the release is deployed and all its workloads are Ready."""
        is_deployed = self.state == model.Status.DEPLOYED
        return is_deployed and self.ready == len(self.workloads)


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseView:
    """The state of one OpenStackDeployment. conditions: as "Type=Status (reason)"."""

    rows: tuple[Row, ...]
    conditions: tuple[str, ...]
    state: str

    @property
    def is_complete(self) -> bool:
        """Whether all is deployed and the controller reports the same."""
        done = all(row.is_complete for row in self.rows)
        return bool(self.rows) and done and self.state == "APPLIED"


def _items(api: client.Api, kind: Resource) -> list[Json]:
    page = api.list_page(kind, deployment.NAMESPACE, query={}, timeout_s=TIMEOUT_S)
    return list(json.loads(page)["items"])


def observe(api: client.Api, name: str = deployment.NAME) -> ReleaseView:
    """Read the OpenStackDeployment, its HelmBundles, releases and workloads.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    revisions = _revisions(api)
    workloads = [
        workload(kind.kind, item) for kind in WORKLOADS for item in _items(api, kind)
    ]
    bundles = _items(api, deployment.BUNDLES)
    rows = [
        _row(bundle, release, revisions, workloads)
        for bundle in sorted(bundles, key=lambda item: str(item["metadata"]["name"]))
        for release in bundle.get("spec", {}).get("releases", ())
    ]
    owner = _named(_items(api, deployment.DEPLOYMENTS), name)
    status = _named(_items(api, deployment.STATUSES), name).get("status", {})
    conditions = owner.get("status", {}).get("conditions", ())
    return ReleaseView(
        tuple(rows),
        tuple(_condition(condition) for condition in conditions),
        str(status.get("osdpl", {}).get("state", "")),
    )


def _named(items: Iterable[Json], name: str) -> Json:
    return next((item for item in items if item["metadata"]["name"] == name), {})


def _condition(condition: Json) -> str:
    reason, message = condition.get("reason", ""), condition.get("message", "")
    return f"{condition['type']}={condition['status']} ({reason}) {message}".strip()


def _revisions(api: client.Api) -> Mapping[str, model.Revision]:
    """Return the newest revision of each release by its name."""
    query = {"labelSelector": releases.SELECTOR}
    page = api.list_page(
        resources.SECRETS, deployment.NAMESPACE, query=query, timeout_s=TIMEOUT_S
    )
    secrets = objects.decode_list(page, objects.Bare).items
    latest = releases.latest(secret.metadata for secret in secrets)
    return {revision.name: revision for revision in latest.values()}


def workload(kind: str, item: Json) -> WorkloadView:
    """Read one workload."""
    spec, status = item.get("spec", {}), item.get("status", {})
    meta = item["metadata"]
    if kind == "DaemonSet":
        desired = int(status.get("desiredNumberScheduled", 0))
        ready = min(
            int(status.get("numberReady", 0)),
            int(status.get("updatedNumberScheduled", 0)),
        )
    else:
        desired = int(spec.get("replicas", 1))
        ready = min(
            int(status.get("readyReplicas", 0)), int(status.get("updatedReplicas", 0))
        )
    return WorkloadView(
        kind=kind,
        name=str(meta["name"]),
        release=str(meta.get("annotations", {}).get(_OWNER, "")),
        ready=ready,
        desired=desired,
        is_current=int(status.get("observedGeneration", 0)) >= meta["generation"],
    )


def _row(
    bundle: Json,
    release: Json,
    revisions: Mapping[str, model.Revision],
    workloads: Sequence[WorkloadView],
) -> Row:
    name = str(release["name"])
    revision = revisions.get(name)
    status = bundle.get("status", {}).get("releaseStatuses", {}).get(name, {})
    is_late = revision is not None and status.get("revision") != revision.number
    waiting = "" if is_late else status.get("waitingFor") or ()
    return Row(
        service=str(bundle["metadata"]["name"]).removeprefix("openstack-"),
        release=name,
        chart=f"{release.get('chart', '')} {release.get('version', '')}".strip(),
        revision=revision.number if revision else 0,
        state=str(revision.status) if revision else "",
        workloads=tuple(workload for workload in workloads if workload.release == name),
        waiting_for=waiting if isinstance(waiting, str) else ", ".join(waiting),
    )


WIDE = 130
"""Columns of a terminal from which charts and all that is waited for are shown."""


def table(view: ReleaseView, title: str = "", width: int = WIDE) -> rich.table.Table:
    """Return the releases as a table for a terminal, one line for each.

    width: of the terminal. A narrow one shows no charts, and of what is waited for only
    the first workload and the number of the others.
    """
    is_wide = width >= WIDE
    result = rich.table.Table(
        title=title or None,
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    columns = ("Service", "Release", "Chart", "Rev.", "State", "Ready")
    for column in columns:
        if is_wide or column != "Chart":
            result.add_column(column, no_wrap=True)
    result.add_column(
        "Waiting for",
        overflow="fold" if is_wide else "ellipsis",
        no_wrap=not is_wide,
    )
    for row in view.rows:
        cells = (
            row.service,
            row.release,
            *((row.chart,) if is_wide else ()),
            str(row.revision or ""),
            row.state or "pending",
            f"{row.ready}/{len(row.workloads)}" if row.workloads else "",
            row.waiting_for if is_wide else _short(row.waiting_for),
        )
        result.add_row(*cells, style="green" if row.is_complete else "")
    return result


def _short(waiting_for: str) -> str:
    """Return the first name without its kind, and how many others there are."""
    first, *others = waiting_for.split(", ")
    name = first.rpartition(" ")[2]
    return f"{name} +{len(others)}" if others else name


def summary(view: ReleaseView) -> str:
    """Return how many releases are complete, for an output that is no terminal."""
    done = sum(row.is_complete for row in view.rows)
    return f"{done} of {len(view.rows)} releases are deployed and Ready"
