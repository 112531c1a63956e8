"""Carries the flow's actions out: one write each, of the cloud or of Kubernetes."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import assert_never

from lib.cloud import errors
from lib.cloud.machines import Machines
from lib.kube import events
from lib.machines import writer
from lib.machines.clusters import model
from lib.machines.clusters.model import Snapshot
from lib.machines.kinds import ClusterObject
from lib.plans.writing import Writing


class Failures:
    """Why deletions were rejected last, by UID of the cluster and name of the machine.

    Safe for many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_uid: dict[str, dict[str, str]] = {}

    def of(self, uid: str) -> Mapping[str, str]:
        """Return the texts for a cluster by machine, the last rejected at the end."""
        with self._lock:
            return dict(self._by_uid.get(uid, {}))

    def note(self, uid: str, name: str, text: str) -> None:
        """Note the result of a deletion; empty: it was accepted."""
        with self._lock:
            by_name = self._by_uid.setdefault(uid, {})
            by_name.pop(name, None)
            if text:
                by_name[name] = text

    def forget(self, uid: str) -> None:
        """Drop what is kept for a cluster."""
        with self._lock:
            self._by_uid.pop(uid, None)


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterDependencies:
    """What a ClusterActor works with. writing: when the cloud may be written."""

    kinds: model.ClusterKinds
    objects: writer.ObjectWriter[ClusterObject]
    recorder: events.Recorder
    machines: Callable[[], Machines]
    writing: Writing
    failures: Failures


class ClusterActor:
    """Writes cluster objects, and deletes what machines have left in the cloud."""

    def __init__(self, dependencies: ClusterDependencies) -> None:
        self._dependencies = dependencies

    def act(self, snapshot: Snapshot, action: model.Action) -> Snapshot:
        """Carry one action out; return the snapshot with our write in it.

        Raises:
            KubeError: it was not carried out, or that is unknown.
            Exception: of the permit; nothing was sent.
        """
        match action:
            case model.CleanUp():
                self._clean_up(snapshot, action)
                return snapshot
            case model.RecordClusterEvent():
                self._record(snapshot, action)
                return snapshot
            case model.WriteClusterStatus():
                return self._write_status(snapshot, action)
            case (
                model.AddClusterFinalizer()
                | model.RemoveClusterFinalizer()
                | model.SetEndpoint()
            ):
                return self._patch(snapshot, action)
        assert_never(action)

    def _patch(
        self,
        snapshot: Snapshot,
        action: (
            model.AddClusterFinalizer | model.RemoveClusterFinalizer | model.SetEndpoint
        ),
    ) -> Snapshot:
        about, dependencies = snapshot.latest.metadata, self._dependencies
        finalizer, is_spec = dependencies.kinds.finalizer, False
        match action:
            case model.AddClusterFinalizer():
                body = writer.with_finalizer(about, finalizer)
            case model.RemoveClusterFinalizer():
                body = writer.without_finalizer(about, finalizer)
                dependencies.failures.forget(snapshot.uid)
            case model.SetEndpoint(endpoint):
                is_spec = True
                value = {"host": endpoint.host, "port": endpoint.port}
                body = {
                    "metadata": {"uid": about.uid},
                    "spec": {"controlPlaneEndpoint": value},
                }
        now = dependencies.objects.merge(about, body)
        count = snapshot.spec_writes + is_spec
        return dataclasses.replace(snapshot, written=now, spec_writes=count)

    def _write_status(
        self, snapshot: Snapshot, action: model.WriteClusterStatus
    ) -> Snapshot:
        about = snapshot.cluster.metadata
        generation = writer.observed_generation(
            about, snapshot.latest.metadata, snapshot.spec_writes
        )
        now = self._dependencies.objects.apply_status(
            about, action.document, generation, action.removed
        )
        return dataclasses.replace(snapshot, written=now)

    def _clean_up(self, snapshot: Snapshot, action: model.CleanUp) -> None:
        """Apply a step; a rejection concerns one machine, and is kept for the status.

        An object that is locked, or was deleted in the meantime, is none.
        """
        dependencies, step = self._dependencies, action.step.step
        text = ""
        with dependencies.writing.permit(str(step)) as left_s:
            try:
                dependencies.machines().apply(step, left_s)
            except (errors.Busy, errors.NotFound):
                pass
            except errors.CloudError as error:
                text = error.summary
        dependencies.failures.note(snapshot.uid, action.name, text)

    def _record(self, snapshot: Snapshot, event: model.RecordClusterEvent) -> None:
        about, kind = snapshot.cluster.metadata, self._dependencies.kinds.cluster
        ref = events.ObjectRef(
            kind.kind, about.name, about.namespace, about.uid, kind.api_version
        )
        recorder = self._dependencies.recorder
        recorder.emit(ref, "Warning", event.reason, event.message)
