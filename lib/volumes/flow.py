"""One cloud's volumes as CSI's controller wants them: wishes settled, facts told.

Nothing survives a call but caches: what one call leaves unfinished, the next one with
the same name or id finds and finishes.
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
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import waiting
from lib.volumes import cache, callers, csi_codes, decide, model, shared_reads, turns
from lib.volumes import lost as requests
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.settling import Settling, Tools


class VolumesFlow:
    """Settles wishes for the volumes of one cloud. Safe for many threads."""

    def __init__(
        self,
        cloud: Callable[[], Volumes],
        effects: callers.CallEffects | None = None,
        started: float | None = None,
        *,
        metrics: reconcile_metrics.ReconcileMetrics | None = None,
        dry_run: bool = False,
    ) -> None:
        """cloud: gives the one to ask now; may change between two calls.

        started: when this process started, in the time of the clock; None: now.
        metrics: of reconciliations; None: not counted. dry_run: log actions in place
        of carrying them out; a call that needs one is refused.
        """
        self._cloud = cloud
        self._effects = effects or callers.CallEffects()
        self._started = self._effects.clock() if started is None else started
        self._facts = cache.Cache(cloud, self._effects)
        self._reader = shared_reads.VolumesReader(cloud, self._facts, self._effects)
        self._holds = turns.Holds()
        self._turns = turns.Turns(self._effects)
        self._settler = waiting.Settler(metrics, dry_run, self._effects.clock)
        if metrics is not None:
            metrics.show(Settling.name)
        self._lost = requests.Lost(self._effects)

    @property
    def sizing(self) -> Sizing:
        """The sizes that volumes may have."""
        return self._cloud().sizing

    @property
    def context_keys(self) -> frozenset[str]:
        """The keys that the context of a VolumeSpec may have."""
        return self._cloud().context_keys

    def is_id(self, text: str) -> bool:
        """Report whether the cloud could have given out this volume ID."""
        return self._cloud().is_id(text)

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """Parse a request; every problem is named."""
        return self._cloud().parse(request)

    def parse_change(self, parameters: Mapping[str, str]) -> VolumeChange | Problems:
        """Parse the parameters of a VolumeAttributesClass."""
        return self._cloud().parse_change(parameters)

    def settle(self, wish: model.Wish, call: callers.Caller) -> Volume | None:
        """Repeat observe, decide and act until the wish is fulfilled.

        Gives the volume, None where its absence was wished.

        Raises:
            Refused: it can't be fulfilled, or not in time.
        """
        if isinstance(wish, model.Modify):
            name = self.type_name(wish.change.type)
            change = dataclasses.replace(wish.change, type=name)
            wish = dataclasses.replace(wish, change=change)
        key = model.key(wish)
        with self._holds.hold(key), self._line(wish) as turn:
            return self._settle(key, Settling(wish, call, turn, self._tools()))

    def _settle(self, key: str, settling: Settling) -> Volume | None:
        try:
            self._settler.settle(settling, key)
        except errors.CloudError as error:
            raise settling.refused(error) from error
        except waiting.Skipped as skipped:
            raise RefusedCall(Code.ABORTED, str(skipped)) from skipped
        except RefusedCall as refused:
            if refused.code is not Code.DEADLINE_EXCEEDED:
                raise
            raise settling.late() from refused
        return settling.result()

    def type_name(self, type: str) -> str:
        """Return the name of a type, which may be given by its ID.

        Raises:
            Refused: UNAVAILABLE; the types can't be read.
        """
        try:
            return self._cloud().type_name(type)
        except errors.CloudError as error:
            raise csi_codes.not_final(csi_codes.from_cloud(error)) from error

    def _tools(self) -> Tools:
        return Tools(
            self._cloud(), self._reader, self._effects, self._lost, self._started
        )

    @contextlib.contextmanager
    def _line(self, wish: model.Wish) -> Iterator[turns.Turn | None]:
        if (
            isinstance(wish, model.PublishVolume | model.UnpublishVolume)
            and wish.instance_id
        ):
            with self._turns.join(wish.instance_id) as turn:
                yield turn
        else:
            yield None

    def look(self, volume_id: VolumeId, call: callers.Caller) -> Volume:
        """Read one volume now.

        Raises:
            Refused: NOT_FOUND, or it can't be read.
        """
        volume = self._read(ById(volume_id), call)
        if not volume:
            text = f"volume_id is {volume_id!r}; there is no such volume"
            raise RefusedCall(Code.NOT_FOUND, text)
        return volume[0]

    def all(self, call: callers.Caller) -> Mapping[VolumeId, Volume]:
        """Return all volumes by id, as they were at most a minute ago.

        Raises:
            Refused: they can't be listed.
        """
        try:
            return self._facts.all(call)
        except errors.CloudError as error:
            raise csi_codes.from_cloud(error) from error

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """Return what can still be made.

        Raises:
            Refused: there is no such type, or it can't be told.
        """
        try:
            return self._cloud().capacity(type, zones)
        except errors.CloudError as error:
            raise csi_codes.from_cloud(error) from error

    def place(self, spec: VolumeSpec, call: callers.Caller) -> VolumeSpec:
        """Resolve the names of volumes to be placed by, and the ID of a type.

        A volume that exists already is placed, whatever became of the others.

        Raises:
            Refused: INVALID_ARGUMENT, when there is no such volume.
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
            Refused: it can't be read.
        """
        volumes = self._read(ByName(name.strip()), call)
        return any(volume.cluster == cluster for volume in volumes)

    def kept_open(
        self, refused: RefusedCall, name: str, cluster: str, call: callers.Caller
    ) -> RefusedCall:
        """Return a refusal that is not final while a volume of the name may exist.

        For refusals of a creation from before the name was looked up.
        """
        if refused.code in csi_codes.NOT_FINAL:
            return refused
        lost_s = self._lost.age_s(requests.creation(name))
        try:
            exists = self.exists(name, cluster, call)
        except RefusedCall as unknown:
            return csi_codes.not_final(unknown)
        if not exists and (lost_s is None or lost_s > decide.LOST_S):
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
                wrong = f"{field} is {text!r}; want names or ids of volumes there are"
                raise RefusedCall(Code.INVALID_ARGUMENT, wrong)
            names.extend(volume.id for volume in volumes)
        return tuple(dict.fromkeys(names))

    def _read(self, ref: Ref, call: callers.Caller) -> tuple[Volume, ...]:
        now = self._effects.clock()
        (volume,) = self._reader.read((ref,), now, now, call)
        if isinstance(volume, Unknown):
            raise csi_codes.from_cloud(volume.error) from volume.error
        return volume
