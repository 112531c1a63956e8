"""Carries actions out: one write each, or the start of a job."""

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lib.kube import client, errors, events, objects, resources
from lib.kube.resources import Resource
from lib.operator_edge.objects import Objects
from lib.osdpl.reconcile import actions, bundles, desire, states, upgrade, work
from lib.osdpl.reconcile.decide import FINALIZER
from lib.osdpl.reconcile.observe import Observer
from lib.osdpl.reconcile.snapshot import Snapshot
from lib.osdpl.values import credentials, generating
from lib.process import decoding, logs

MANAGER = bundles.MANAGER
TIMEOUT_S = 10.0
GROUP_LABEL = "release_group"
"""On every object of a release, hook Jobs and claims of StatefulSets included.

Source: openstack-helm, helm-toolkit/templates/snippets/_kubernetes_metadata_labels.tpl.
"""
_APPLY = {"fieldManager": MANAGER, "force": "true"}


class Actor:
    """Writes to the API server, each field by one owner, and starts jobs.

    stored: the Secrets of the namespace, without those of helm. generator: of new
    credentials.
    """

    def __init__(  # noqa: PLR0913 # the parts of an act
        self,
        api: client.Api,
        deployments: Objects,
        observer: Observer,
        worker: work.Worker,
        recorder: events.Recorder,
        stored: Callable[[], Mapping[str, credentials.Stored]],
        generator: generating.Generator,
    ) -> None:
        self._generator = generator
        self._api = api
        self._deployments = deployments
        self._observer = observer
        self._worker = worker
        self._recorder = recorder
        self._stored = stored
        self._log = logs.get(__name__)

    def act(self, snapshot: Snapshot, action: actions.Action) -> None:
        """Carry one action out.

        Raises:
            KubeError: it was not written. ConfigError: a credential is malformed.
        """
        match action:
            case actions.AddFinalizer():
                self._finalizers(snapshot, (FINALIZER,), ())
            case actions.RemoveFinalizer(names=names):
                self._finalizers(snapshot, (), names or (FINALIZER,))
            case actions.EnsureCredentials(secret=name):
                self._ensure_credentials(snapshot, name)
            case actions.ReadChart():
                self._worker.read_chart(action)
            case actions.Upgrade():
                self._worker.upgrade(action)
            case actions.Relabel():
                self._relabel(action)
            case actions.Uninstall():
                self._worker.uninstall(action)
            case actions.Cancel(release=release):
                self._worker.cancel(release)
            case actions.ApplyConditions(status=status, events=found):
                self._apply_conditions(snapshot, status, found)
            case _:
                self._on_bundle(snapshot, action)

    def _on_bundle(self, snapshot: Snapshot, action: actions.Action) -> None:
        namespace = snapshot.namespace
        match action:
            case actions.ApplyBundle(name=name, document=document):
                self._apply(resources.HELM_BUNDLES, namespace, name, document)
            case actions.ApplyBundleStatus(name=name, status=status):
                document = _document("HelmBundle", namespace, name, status)
                self._apply(resources.HELM_BUNDLES, namespace, name, document, "status")
                self._observer.note_status(name)
            case actions.DeleteBundle():
                self._delete_bundle(namespace, action)
            case actions.ApplyStatus(document=document):
                statuses = resources.OPENSTACK_DEPLOYMENT_STATUSES
                self._apply(statuses, namespace, snapshot.name, document)

    def _apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        subresource: str | None = None,
    ) -> None:
        """Apply all fields that this program owns."""
        answer = self._api.patch(
            resource,
            name,
            msgspec.json.encode(document),
            namespace,
            subresource=subresource,
            content_type=client.APPLY_PATCH,
            query=_APPLY,
            timeout_s=TIMEOUT_S,
        )
        version = decoding.decode(answer, objects.Bare).metadata.resource_version
        self._observer.hold(resource.plural, f"{namespace}/{name}", version)

    def _relabel(self, action: actions.Relabel) -> None:
        """Record version and owner, upon exactly the revision that was observed."""
        revision = action.revision
        patch = {
            "metadata": {
                "uid": revision.secret_uid,
                "resourceVersion": revision.resource_version,
                "labels": {
                    upgrade.VERSION_LABEL: action.openstack_version,
                    states.OWNER_LABEL: action.owner,
                },
            }
        }
        answer = self._api.patch(
            resources.SECRETS,
            revision.secret_name,
            msgspec.json.encode(patch),
            revision.namespace,
            timeout_s=TIMEOUT_S,
        )
        version = decoding.decode(answer, objects.Bare).metadata.resource_version
        key = f"{revision.namespace}/{revision.secret_name}"
        self._observer.hold(resources.SECRETS.plural, key, version)

    def _delete_bundle(self, namespace: str, action: actions.DeleteBundle) -> None:
        """Delete what releases left, then what records them: it can be repeated."""
        kinds = [resources.JOBS]
        if action.has_claims:
            kinds.append(resources.CLAIMS)
        for release in action.releases:
            for kind in kinds:
                self._delete_labelled(kind, namespace, release)
        for secret in action.secrets:
            self._delete(resources.SECRETS, namespace, secret)
        self._delete(resources.HELM_BUNDLES, namespace, action.name, action.uid)
        key = f"{namespace}/{action.name}"
        self._observer.hold(resources.HELM_BUNDLES.plural, key, None)

    def _delete_labelled(self, kind: Resource, namespace: str, release: str) -> None:
        """Delete the objects of a release that helm does not know."""
        query = {"labelSelector": f"{GROUP_LABEL}={release}"}
        page = self._api.list_page(kind, namespace, query=query, timeout_s=TIMEOUT_S)
        for item in objects.decode_list(page, objects.Bare).items:
            self._delete(kind, namespace, item.metadata.name, item.metadata.uid)

    def _delete(self, kind: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete an object and its dependents. uid: of this very object."""
        options: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        body = msgspec.json.encode(options)
        with contextlib.suppress(errors.NotFound):
            self._api.delete(kind, name, namespace, body=body, timeout_s=TIMEOUT_S)

    def _finalizers(
        self, snapshot: Snapshot, add: tuple[str, ...], remove: tuple[str, ...]
    ) -> None:
        """Change the finalizers, upon exactly the object that was observed."""
        metadata = snapshot.document["metadata"]
        before = [
            name for name in metadata.get("finalizers") or () if name not in remove
        ]
        patch = {
            "metadata": {
                "uid": metadata.get("uid"),
                "resourceVersion": metadata.get("resourceVersion"),
                "finalizers": [*before, *(name for name in add if name not in before)],
            }
        }
        try:
            answer = self._api.patch(
                resources.OPENSTACK_DEPLOYMENTS,
                snapshot.name,
                msgspec.json.encode(patch),
                snapshot.namespace,
                timeout_s=TIMEOUT_S,
            )
        except errors.NotFound:
            self._deployments.remove(snapshot.document)
            return
        self._keep(answer)

    def _keep(self, answer: bytes) -> None:
        """Keep the state of the OpenStackDeployment that our own write has made."""
        document = json.loads(answer)
        metadata = document["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._deployments.remove(document)
        else:
            self._deployments.put(document)

    def _ensure_credentials(self, snapshot: Snapshot, name: str) -> None:
        """Write what a Secret lacks; a new one is created, never replaced."""
        stored = self._stored()
        # Of this Secret only: keys that are generated and dropped take long.
        shapes = [
            shape
            for shape in desire.shapes(snapshot.document)
            if credentials.active(shape, stored) == name
        ]
        for write in credentials.writes(shapes, stored, self._generator):
            data = {key: _base64(value) for key, value in write.data.items()}
            answer = (
                self._create_secret(snapshot, name, data)
                if write.is_new
                else self._api.patch(
                    resources.SECRETS,
                    name,
                    msgspec.json.encode({"data": data}),
                    snapshot.namespace,
                    timeout_s=TIMEOUT_S,
                )
            )
            version = decoding.decode(answer, objects.Bare).metadata.resource_version
            key = f"{snapshot.namespace}/{name}"
            self._observer.hold(resources.SECRETS.plural, key, version)

    def _create_secret(
        self, snapshot: Snapshot, name: str, data: Mapping[str, str]
    ) -> bytes:
        """Create it without an owner: data of the cloud outlive the object."""
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": name, "labels": {bundles.MANAGED_BY: MANAGER}},
            "data": data,
        }
        return self._api.create(
            resources.SECRETS,
            msgspec.json.encode(document),
            snapshot.namespace,
            timeout_s=TIMEOUT_S,
        )

    def _apply_conditions(
        self,
        snapshot: Snapshot,
        status: Mapping[str, Any],
        condition_events: tuple[tuple[str, str, str], ...],
    ) -> None:
        body = _document(
            "OpenStackDeployment", snapshot.namespace, snapshot.name, status
        )
        body["metadata"]["uid"] = snapshot.uid  # never creates another object
        try:
            answer = self._api.patch(
                resources.OPENSTACK_DEPLOYMENTS,
                snapshot.name,
                msgspec.json.encode(body),
                snapshot.namespace,
                subresource="status",
                content_type=client.APPLY_PATCH,
                query=_APPLY,
                timeout_s=TIMEOUT_S,
            )
        except errors.NotFound:
            self._deployments.remove(snapshot.document)
            return
        self._keep(answer)
        ref = events.ObjectRef(
            "OpenStackDeployment",
            snapshot.name,
            snapshot.namespace,
            snapshot.uid,
            bundles.API_VERSION,
        )
        for type, reason, message in condition_events:
            is_bad = type == "Warning"
            log = self._log.warning if is_bad else self._log.info
            log("condition changed", key=snapshot.key, reason=reason, message=message)
            self._recorder.emit(ref, "Warning" if is_bad else "Normal", reason, message)


def _document(
    kind: str, namespace: str, name: str, status: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": bundles.API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "status": status,
    }


def _base64(value: bytes) -> str:
    text: str = msgspec.to_builtins(value)
    return text
