"""Preparations before helm is run for a release: nothing that helm would refuse.

Rules: the render is compared with the installed manifests, helm's output is never read.
Only Jobs and the Secret of a pending revision are deleted; a PersistentVolumeClaim,
or an object that holds pods, never.
"""

import re
import threading
import time
from collections.abc import Mapping

import msgspec
import yaml

from lib.helm import command, immutable, releases
from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.kube import client, errors, objects, resources
from lib.osdpl.api import model
from lib.osdpl.reconcile import images
from lib.osdpl.reconcile.actions import Upgrade
from lib.osdpl.reconcile.caches import Caches
from lib.process import decoding

TIMEOUT_S = 10.0
"""For one request to the API server."""
DELETION_S = 60.0
POLL_S = 0.5
"""Time for the deletion of a Job, and between two reads of it."""
SECRET_MAX = 1024 * 1024
"""Bytes of data that a Secret holds.

Source: Kubernetes pkg/apis/core, MaxSecretSize."""

_RESOURCES: Mapping[str, resources.Resource] = {
    resource.kind: resource
    for resource in (
        *(resources.DEPLOYMENTS, resources.STATEFUL_SETS, resources.DAEMON_SETS),
        *(resources.SERVICES, resources.CONFIG_MAPS, resources.SECRETS),
        *(resources.CLAIMS, resources.ROLE_BINDINGS, resources.CLUSTER_ROLE_BINDINGS),
    )
}
_HOOK = re.compile(r"""^\s*["']?helm\.sh/hook["']?\s*:""", re.MULTILINE)
"""Annotation of a hook."""


class Preparation:
    """Prepares runs of helm in one namespace. Safe to use from several threads."""

    def __init__(
        self, api: client.Api, caches: Caches, helm_program: command.Helm
    ) -> None:
        self._api = api
        self._caches = caches
        self._helm = helm_program
        self._namespace = caches.namespace

    def prepare(
        self, action: Upgrade, run: helm.Upgrade, cancel: threading.Event
    ) -> int | None:
        """Return the number of hooks of a run, after the removal of obstacles.

        None: there is nothing to run.

        Raises:
            HelmError: the chart does not render, or helm would be refused.
            KubeError: the API server did not answer.
        """
        if action.is_damaged and all(map(self._exists, action.missing)):
            return None  # the watch was late: nothing is missing
        template = helm.Template(
            run.release, run.namespace, run.chart, run.values, secrets=run.secrets
        )
        rendered = self._helm.template(template, cancel)
        require_size(run.release, run.values, rendered)
        jobs = self._changed_jobs(action.release, rendered)
        if action.interrupted is not None:
            self._delete_secret(action.interrupted)
        for name in jobs:
            self._delete_job(name, cancel)
        return len(_HOOK.findall(rendered))

    def _exists(self, workload: model.Workload) -> bool:
        return self._uid(_RESOURCES[workload.kind], workload.name) is not None

    def _changed_jobs(self, release: model.Release, rendered: str) -> list[str]:
        """Return the Jobs that have to be created again.

        Raises:
            ImmutableChange: something else cannot be changed.
        """
        installed = self._installed(release.name)
        try:
            changes = immutable.changes(installed, rendered)
            broker = images.broker_change(release, installed, rendered)
        except yaml.YAMLError:
            return []  # helm explains what is wrong with it
        if broker is not None:
            raise helm_errors.ImmutableChange(f"upgrade of {release.name}: {broker}")
        conflicts = [
            change
            for change in changes
            if change.kind != "Job"
            and self._uid(_RESOURCES[change.kind], change.name) is not None
        ]
        if conflicts:
            words = "; ".join(
                f"{change.kind} {change.name}: {change.field} cannot be changed:"
                f" {immutable.remedy(change)}"
                for change in conflicts
            )
            raise helm_errors.ImmutableChange(f"upgrade of {release.name}: {words}")
        return sorted({change.name for change in changes if change.kind == "Job"})

    def _installed(self, release: str) -> tuple[str, ...]:
        """Return the manifests of which objects may exist."""
        manifests = []
        for revision in self._caches.installed(release):
            try:
                content = self._caches.release(revision)
            except helm_errors.MalformedRelease:
                continue
            if content is not None:
                manifests.append(content.manifest)
        return tuple(manifests)

    def _uid(self, resource: resources.Resource, name: str) -> str | None:
        """Return the UID of an object; None if there is none."""
        namespace = self._namespace if resource.namespaced else None
        try:
            body = self._api.read(resource, name, namespace, timeout_s=TIMEOUT_S)
        except errors.NotFound:
            return None
        return decoding.decode(body, objects.Bare).metadata.uid

    def _delete_job(self, name: str, cancel: threading.Event) -> None:
        """Delete a Job and wait until it does not exist any more.

        Raises:
            TimedOut: it still exists.
        """
        uid = self._uid(resources.JOBS, name)
        if uid is None:
            return
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        self._delete(resources.JOBS, name, self._namespace, options)
        deadline = time.monotonic() + DELETION_S
        while self._uid(resources.JOBS, name) == uid:
            if time.monotonic() > deadline or cancel.wait(POLL_S):
                words = f"Job {name}: still not deleted after {DELETION_S:.0f} s"
                raise helm_errors.TimedOut(f"{words}: remove its finalizers")

    def _delete_secret(self, revision: helm.Revision) -> None:
        preconditions = {
            "uid": revision.secret_uid,
            "resourceVersion": revision.resource_version,
        }
        self._delete(
            resources.SECRETS,
            revision.secret_name,
            revision.namespace,
            {"preconditions": preconditions},
        )

    def _delete(
        self,
        resource: resources.Resource,
        name: str,
        namespace: str,
        options: Mapping[str, object],
    ) -> None:
        try:
            self._api.delete(
                resource,
                name,
                namespace,
                body=msgspec.json.encode(options),
                timeout_s=TIMEOUT_S,
            )
        except errors.NotFound:
            return


def require_size(release: str, values: Mapping[str, object], manifest: str) -> None:
    """Return if values and manifest fit into the Secret of a revision.

    The Secret holds the chart, too: helm may still refuse a release that passes here.

    Raises:
        TooLarge: they do not.
    """
    packed = len(releases.encode({"config": values, "manifest": manifest}))
    if packed > SECRET_MAX:
        raise helm_errors.TooLarge(
            f"values of release {release}: {packed} bytes packed with their manifest:"
            f" must be at most {SECRET_MAX}: helm stores them in one Secret"
        )
