"""The volumes of one cloud, for CSI's controller service.

Nothing but caches survives a call: the next call with the same name or ID completes
what a call did not complete.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.model import Unknown
from lib.cloud.volumes import (
    ById,
    ByName,
    Capacity,
    Problems,
    Ref,
    Sizing,
    Volume,
    VolumeChange,
    VolumeId,
    VolumeRequest,
    Volumes,
    VolumeSpec,
)
from lib.cloud.write_places import Places, Standing
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import waiting
from lib.volumes import (
    cache,
    call_places,
    callers,
    csi_codes,
    model,
    outcomes,
    shared_reads,
    turns,
)
from lib.volumes import lost as lost_requests
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.settling import Settling, Tools


class VolumesFlow:
    """Settles requests for the volumes of one cloud. Safe for many threads."""

    def __init__(
        self,
        cloud: Callable[[], Volumes],
        effects: callers.CallEffects | None = None,
        started: float | None = None,
        *,
        metrics: reconcile_metrics.ReconcileMetrics | None = None,
        dry_run: bool = False,
    ) -> None:
        """cloud: returns the current cloud; it may change between two calls.

        started: start of this process, in the time of the clock; None: now.
        metrics: of reconciliations; None: not counted. dry_run: log actions instead
        of carrying them out; a call that requires an action is refused.
        """
        self._cloud = cloud
        self._max_writes = call_places.MOST
        self._effects = effects or callers.CallEffects()
        self._started = self._effects.clock() if started is None else started
        self._facts = cache.Cache(cloud, self._effects)
        self._reader = shared_reads.VolumesReader(cloud, self._facts, self._effects)
        self._key_locks = turns.KeyLocks()
        self._turns = turns.Turns(self._effects)
        self._settler = waiting.Settler(metrics, dry_run, self._effects.clock)
        if metrics is not None:
            metrics.show(Settling.name)
        self._lost = lost_requests.Lost(self._effects)
        self.follow()

    def follow(self) -> None:
        """Wake waiting calls by the changes that the current cloud reports."""
        self._cloud().subscribe(self._reader.wake)

    @property
    def sizing(self) -> Sizing:
        """The sizes that volumes may have."""
        return self._cloud().sizing

    @property
    def context_keys(self) -> frozenset[str]:
        """The keys that the context of a VolumeSpec may have."""
        return self._cloud().context_keys

    def is_id(self, text: str) -> bool:
        """Report whether a text has the form of the cloud's volume IDs."""
        return self._cloud().is_id(text)

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """Parse a request; list all problems."""
        return self._cloud().parse(request)

    def parse_change(self, parameters: Mapping[str, str]) -> VolumeChange | Problems:
        """Parse the parameters of a VolumeAttributesClass."""
        return self._cloud().parse_change(parameters)

    def settle(self, request: model.Request, call: callers.Caller) -> Volume | None:
        """Repeat observe, decide and act until the request is fulfilled.

        Returns the volume; None where its absence was requested.

        Raises:
            RefusedCall: the request can't be fulfilled, or not before the deadline.
        """
        if isinstance(request, model.Modify):
            name = self.type_name(request.change.type)
            change = dataclasses.replace(request.change, type=name)
            request = dataclasses.replace(request, change=change)
        key = model.key(request)
        with self._key_locks.hold(key), self._line(request) as turn:
            return self._settle(key, Settling(request, call, turn, self._tools()))

    def _settle(self, key: str, settling: Settling) -> Volume | None:
        is_settled = goes_on = False
        try:
            self._settler.settle(settling, key)
            is_settled = True
        except errors.CloudError as error:
            raise settling.refused(error) from error
        except waiting.Skipped as skipped:
            raise RefusedCall(Code.ABORTED, str(skipped)) from skipped
        except RefusedCall as refused:
            goes_on = refused.code in (Code.DEADLINE_EXCEEDED, Code.CANCELLED)
            if refused.code is not Code.DEADLINE_EXCEEDED:
                raise
            raise settling.late() from refused
        finally:
            settling.release(is_settled=is_settled, goes_on=goes_on)
        return settling.result()

    def type_name(self, type: str) -> str:
        """Return the name of a type by its name or ID.

        Raises:
            RefusedCall: UNAVAILABLE; the types can't be read.
        """
        try:
            return self._cloud().type_name(type)
        except errors.CloudError as error:
            raise csi_codes.not_final(csi_codes.from_cloud(error)) from error

    def _tools(self) -> Tools:
        return Tools(
            self._cloud(),
            self._reader,
            self._effects,
            self._lost,
            self._started,
            self._places,
        )

    def _places(self, attaches: bool) -> Places | None:
        return call_places.of_cloud(self._cloud(), attaches, self._max_writes)

    def limit_writes(self, most: int) -> None:
        """Set how many writes may be in progress in a service of the cloud, at most."""
        self._max_writes = most

    def standing(self, *, attaches: bool) -> Standing:
        """Return the writes in progress: of attachments, or of volumes."""
        places = self._places(attaches)
        return Standing(0, 0, 0, 0.0) if places is None else places.standing()

    @contextlib.contextmanager
    def _line(self, request: model.Request) -> Iterator[turns.Turn | None]:
        if (
            isinstance(request, model.PublishVolume | model.UnpublishVolume)
            and request.instance_id
        ):
            with self._turns.join(request.instance_id) as turn:
                yield turn
        else:
            yield None

    def read(self, volume_id: VolumeId, call: callers.Caller) -> Volume:
        """Read one volume now.

        Raises:
            RefusedCall: NOT_FOUND, or it can't be read.
        """
        volume = self._read(ById(volume_id), call)
        if not volume:
            raise csi_codes.not_found("volume_id", "volume", volume_id)
        return volume[0]

    def all(self, call: callers.Caller) -> Mapping[VolumeId, Volume]:
        """Return all volumes by id, as they were at most a minute ago.

        Raises:
            RefusedCall: they can't be listed.
        """
        try:
            return self._facts.all(call)
        except errors.CloudError as error:
            raise csi_codes.from_cloud(error) from error

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """Return the capacity for new volumes.

        Raises:
            RefusedCall: the type does not exist, or the capacity can't be read.
        """
        try:
            return self._cloud().capacity(type, zones)
        except errors.CloudError as error:
            raise csi_codes.from_cloud(error) from error

    def place(self, spec: VolumeSpec, call: callers.Caller) -> VolumeSpec:
        """Resolve the names of affinity and anti-affinity volumes, and the type's ID.

        When the requested volume exists already, missing other volumes are ignored.

        Raises:
            RefusedCall: INVALID_ARGUMENT: a volume does not exist.
        """
        spec = dataclasses.replace(spec, type=self.type_name(spec.type))
        try:
            near = self._ids("affinity", spec.near, call)
            apart = self._ids("anti-affinity", spec.apart, call)
        except RefusedCall as refused:
            if refused.code in csi_codes.NOT_FINAL or not self.exists(
                spec.name, spec.cluster, call
            ):
                raise
            near = apart = ()
        return dataclasses.replace(spec, near=near, apart=apart)

    def exists(self, name: str, cluster: str, call: callers.Caller) -> bool:
        """Report whether a volume of this name belongs to the cluster.

        Raises:
            RefusedCall: it can't be read.
        """
        volumes = self._read(ByName(name.strip()), call)
        return any(volume.cluster == cluster for volume in volumes)

    def kept_open(
        self, refused: RefusedCall, name: str, cluster: str, call: callers.Caller
    ) -> RefusedCall:
        """Return a refusal that is not final while a volume of the name may exist.

        For refusals of a creation before the name was read.
        """
        if refused.code in csi_codes.NOT_FINAL:
            return refused
        lost_s = self._lost.age_s(lost_requests.creation(name))
        try:
            exists = self.exists(name, cluster, call)
        except RefusedCall as unknown:
            return csi_codes.not_final(unknown)
        if not exists and (lost_s is None or lost_s > outcomes.LOST_S):
            return refused
        text = f"{refused.message}; a volume of that name exists or may exist already"
        return RefusedCall(Code.ABORTED, text)

    def _ids(
        self, field: str, texts: tuple[str, ...], call: callers.Caller
    ) -> tuple[str, ...]:
        names: list[str] = []
        for text in texts:
            volumes = self._read(ById(VolumeId(text)), call)
            volumes = volumes or self._read(ByName(text), call)
            if not volumes:
                required = "names or IDs of existing volumes"
                raise RefusedCall(
                    Code.INVALID_ARGUMENT, csi_codes.invalid(field, text, required)
                )
            names.extend(volume.id for volume in volumes)
        return tuple(dict.fromkeys(names))

    def _read(self, ref: Ref, call: callers.Caller) -> tuple[Volume, ...]:
        now = self._effects.clock()
        (volume,) = self._reader.read((ref,), now, now, call)
        if isinstance(volume, Unknown):
            raise csi_codes.from_cloud(volume.error) from volume.error
        return volume
