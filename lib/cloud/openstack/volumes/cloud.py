"""The volumes of one OpenStack project."""

import dataclasses
import datetime
import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import structlog

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.openstack.config.settings import BlockStorage
from lib.cloud.openstack.http import client
from lib.cloud.openstack.volumes import (
    leftovers,
    native,
    parameters,
    reads,
    translate,
    writes,
)
from lib.cloud.support import (
    absence_scope,
    cluster_witnesses,
    label_values,
    parallel,
)
from lib.cloud.volumes import (
    ById,
    ByName,
    Capacity,
    Feature,
    Found,
    Problems,
    Ref,
    Sizing,
    Volume,
    VolumeChange,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
    VolumesReading,
    is_same_type,
)
from lib.cloud.write_places import Places
from lib.process import config

CALL_TIMEOUT_S = 60.0
"""Of one operation that is a call or two."""
LIST_TIMEOUT_S = 120.0
"""Of one whole list with all its pages."""
FEW = 3
"""Up to this many volumes for each page of the list they are read one by one."""
FEATURES = frozenset(Feature)
"""Cinder and Nova have all of them."""
SIZES = Sizing(
    step_bytes=translate.GIB,
    default_bytes=translate.GIB,
    least_bytes=translate.GIB,
    most_bytes=(2**31 - 1) * translate.GIB,
)
"""Source: Cinder API v3, "Create a volume": size; the reference's default of 1 GiB."""
_OLDEST = (3, 0)

T = TypeVar("T")
S = TypeVar("S")


class OpenStackVolumes:
    """Implements `lib.cloud.volumes.Volumes`.

    Keeps only what may be dropped: the number of volumes in the last list, and the
    unexpected statuses that were reported.
    """

    def __init__(
        self,
        api: client.Client,
        settings: BlockStorage,
        guard: absence_scope.Guard | None = None,
        now: Callable[[], datetime.datetime] | None = None,
        cluster: cluster_witnesses.OfCluster | None = None,
    ) -> None:
        """guard: where absence counts; None: the project of the credentials, always.

        cluster: whose objects must be observed before an absence counts; None: none.
        now: the time of day, which Cinder's times are compared with; None: by Cinder's
        own clock.
        """
        newest = _OLDEST if settings.ignore_volume_microversion else None
        self._api = api
        self._guard = guard or absence_scope.Guard(api.project_id, "")
        self._settings = settings
        self._reads = reads.VolumeReads(api, newest)
        self._writes = writes.Writes(api, newest)
        self._leftovers = leftovers.Leftovers(
            self._reads, self._writes, now or self._time_of_cinder, api.now
        )
        self._witnesses: cluster_witnesses.WitnessSearch | None = None
        if cluster is not None:
            self._witnesses = cluster_witnesses.WitnessSearch(
                cluster,
                translate.is_id,
                self._reads.has_server,
                self.listing,
                api.now,
            )
        self._listed = 0
        self._odd_statuses: set[str] = set()
        self._log = structlog.stdlib.get_logger()

    def _time_of_cinder(self) -> datetime.datetime:
        seconds = self._api.wall(client.Service.VOLUME)
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)

    def places(self, *, attaches: bool) -> Places:
        """See `lib.cloud.volumes.Placing`."""
        kind = client.Service.COMPUTE if attaches else client.Service.VOLUME
        return self._api.places(kind)

    @property
    def sizing(self) -> Sizing:
        """See the protocol."""
        return SIZES

    @property
    def context_keys(self) -> frozenset[str]:
        """See the protocol."""
        return parameters.CONTEXT_KEYS

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See the protocol: Cinder and Nova report no changes."""
        del fn

    def is_id(self, text: str) -> bool:
        """See the protocol."""
        return translate.is_id(text)

    def type_name(self, type: str) -> str:
        """See the protocol; Cinder's types have IDs as volumes do."""
        if not translate.is_id(type):
            return type
        types = self._reads.types(self._deadline())
        names = (
            volume_type.name
            for volume_type in types
            if type in (volume_type.name, volume_type.id)
        )
        return next(names, type)

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """See the protocol."""
        return parameters.spec(request, self._settings)

    def parse_change(self, changes: Mapping[str, str]) -> VolumeChange | Problems:
        """See the protocol."""
        return parameters.change(changes)

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        """See the protocol."""
        until = math.inf if within_s is None else self._api.now() + within_s
        possible = {
            ref for ref in refs if isinstance(ref, ByName) or translate.is_id(ref.id)
        }
        observed: dict[Ref, Found] = dict.fromkeys(set(refs) - possible, ())
        listed: tuple[Volume, ...] | None = None
        if len(possible) > FEW * max(1, math.ceil(self._listed / reads.PAGE)):
            try:
                listed, is_complete = self._list(until)
            except errors.CloudError as error:
                return VolumesReading(
                    observed | dict.fromkeys(possible, Unknown(error))
                )
            observed |= _in_list(possible, listed, is_complete)
        single = [ref for ref in possible if ref not in observed]
        singles = parallel.each(lambda ref: self._look(ref, until), single, "volume")
        observed |= dict(zip(single, singles, strict=True))
        observed |= self._doubted(possible, observed)
        refs_by_id = [ref for ref in possible if isinstance(ref, ById)]
        full = [ref for ref in refs_by_id if _is_partial(ref, observed[ref])]
        answers = parallel.each(
            lambda ref: self._full(observed[ref], until), full, "volume"
        )
        observed |= dict(zip(full, answers, strict=True))
        return VolumesReading(self._explained(observed, until), listed)

    def _doubted(
        self, possible: Collection[Ref], observed: Mapping[Ref, Found]
    ) -> dict[Ref, Found]:
        """Return Unknown for what is absent in another project or region."""
        absent = [ref for ref in possible if observed[ref] == ()]
        # Of a name no absence is a loss, and no existence is a proof.
        lost = [ref for ref in absent if isinstance(ref, ById)]
        created = self._guard.memory.created
        try:
            if any(
                isinstance(ref, ById)
                and _is_there(observed[ref])
                and ref.id not in created
                for ref in possible
            ):
                self._guard.observed()
            if absent:
                self._guard.check("find volumes")
        except errors.CloudError as error:
            return dict.fromkeys(absent, Unknown(error))
        try:
            lost = [ref for ref in lost if not self._guard.is_created_here(ref.id)]
            if lost:
                self._require_home("find volumes", [ref.witness for ref in lost])
        except errors.CloudError as error:
            return dict.fromkeys(lost, Unknown(error))
        return {}

    def _require_home(
        self, operation: str, instances: Sequence[InstanceId | None] = ()
    ) -> None:
        """Check that an absence by ID is that of an object of the cluster.

        instances: some of the cluster.

        Raises:
            CloudError: nothing of the cluster was observed here, or it is not known.
        """
        searched = self._witnesses
        if searched is None:
            self._guard.check(operation)
            return
        created = self._guard.memory.created
        read = functools.partial(searched.exist, instances, created, self._deadline())
        self._guard.check(operation, read)

    def listing(self) -> tuple[Volume, ...]:
        """See the protocol."""
        return self._list()[0]

    def _list(self, until: float = math.inf) -> tuple[tuple[Volume, ...], bool]:
        """Return all volumes that can be read, and whether these are all."""
        listing = self._reads.volumes(min(self._deadline(LIST_TIMEOUT_S), until))
        self._listed = len(listing.volumes)
        volumes = tuple(self._translated(volume) for volume in listing.volumes)
        return volumes, not listing.unreadable

    def create(self, spec: VolumeSpec) -> Volume:
        """See the protocol."""
        deadline = self._deadline()
        if spec.is_shared:
            self._refuse_unshareable(spec, deadline)
        try:
            volume = self._translated(self._writes.create(spec, deadline))
            self._guard.created(volume.id)
            return volume
        except errors.Unplaceable as error:
            if parameters.placement(spec).is_fixed:
                raise _invalid(error.message, error) from error
            raise
        except (errors.InvalidRequest, errors.NotFound) as error:
            if named := self._with_named_zone(spec, deadline):
                return self.create(named)
            raise self._diagnosed(spec, error, deadline) from error

    def _with_named_zone(self, spec: VolumeSpec, deadline: float) -> VolumeSpec | None:
        """Return the spec for the zone whose name as a label is that of the spec.

        The topology has zones as Nodes are labelled: "Default Group" is "Default-Group"
        there. None: Cinder has the zone, or none, or several with such a name.
        """
        place = parameters.placement(spec)
        if not place.zone or place.is_fixed:
            return None
        try:
            zones = self._reads.zones(deadline)
        except errors.CloudError:
            return None  # the refusal of the creation matters more
        named = [zone for zone in zones if label_values.label_value(zone) == place.zone]
        if len(named) != 1 or named == [place.zone] or place.zone in zones:
            return None
        provider = dataclasses.replace(place, zone=named[0])
        return dataclasses.replace(spec, provider=provider)

    def delete(self, volume_id: VolumeId) -> None:
        """See the protocol."""
        if not translate.is_id(volume_id):
            return
        deadline = self._deadline()
        error = self._deletion_error(volume_id, deadline)
        if error is None:
            return
        # Cinder says the same, whatever hinders it.
        observation = self._reads.volume(volume_id, deadline)
        if (
            observation is None
            or translate.phase(observation.status) is VolumePhase.DELETING
        ):
            return
        volume = self._translated(observation)
        if leftovers.is_deletable(volume):
            # Its status was another at the first try, or something depends on it.
            error = self._deletion_error(volume_id, deadline)
            if error is None:
                return
        raise leftovers.judge_deletion(volume, error) from error

    def _deletion_error(
        self, volume_id: VolumeId, deadline: float
    ) -> errors.InvalidRequest | None:
        """Begin to delete a volume; return Cinder's refusal, if it is one."""
        try:
            self._writes.delete(volume_id, deadline)
        except errors.NotFound:
            if not self._guard.is_created_here(volume_id):
                self._require_home("delete volume")
        except errors.InvalidRequest as error:
            return error
        return None

    def resize(self, volume: Volume, size_bytes: int) -> None:
        """See the protocol."""
        if volume.attachments and not self._reads.can_extend_in_use():
            raise errors.InUse(
                "an attached volume can't be extended in this cloud: detach it, or use"
                " Cinder's microversion 3.42 (ignore-volume-microversion unset)",
                operation="extend volume",
                resource=volume.id,
            )
        try:
            self._writes.resize(volume.id, size_bytes, self._deadline())
        except errors.AlreadyExists:
            return

    def attach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        if not translate.is_id(instance_id):
            raise _no_server(instance_id)
        try:
            self._writes.attach(volume.id, instance_id, self._deadline())
        except errors.AlreadyExists:
            return
        except errors.NotFound:
            self._guard.check("attach volume")
            raise
        self._guard.observed()  # the server of a Node is here

    def detach(self, volume: Volume, instance_id: InstanceId) -> None:
        """See the protocol."""
        if not translate.is_id(instance_id):
            return
        self._leftovers.detach(volume, instance_id, self._deadline())

    def retype(self, volume: Volume, change: VolumeChange) -> None:
        """See the protocol."""
        if change.type in ("", volume.type):
            return
        deadline = self._deadline()
        try:
            self._writes.retype(volume.id, change.type, deadline)
        except errors.InvalidRequest as error:
            self._require_type(change.type, "mutable parameter", deadline, error)
            raise

    def capacity(self, type: str, zones: tuple[str, ...]) -> Capacity:
        """See the protocol; Cinder's quotas know no zones."""
        del zones
        deadline = self._deadline()
        quotas = self._reads.quotas(deadline).quota_set
        if type and f"gigabytes_{type}" not in quotas:
            # Quotas have the names of types, by which they may not be requested.
            type = self._require_type(type, "parameter", deadline, None).name
        return translate.capacity(quotas, type)

    def _look(self, ref: Ref, until: float) -> Found:
        deadline = min(self._deadline(), until)
        try:
            if isinstance(ref, ByName):
                named = self._reads.named(ref.name, deadline)
                return _ordered(self._translated(volume) for volume in named)
            observed = self._reads.volume(ref.id, deadline)
        except errors.CloudError as error:
            return Unknown(error)
        return () if observed is None else (self._translated(observed),)

    def _full(self, observed: Found, until: float) -> Found:
        """Add the unfinished attachments of a volume."""
        if isinstance(observed, Unknown):
            return observed
        (volume,) = observed
        try:
            if not self._reads.can_list_reservations():
                return observed
            deadline = min(self._deadline(), until)
            held = self._reads.reservations(volume.id, deadline)
        except errors.CloudError as error:
            return Unknown(error)
        return (translate.in_full(volume, held),)

    def _explained(
        self, observed: Mapping[Ref, Found], until: float
    ) -> Mapping[Ref, Found]:
        """Find out why volumes have FAILED; none of them is common."""
        failed = sorted(
            {
                volume.id
                for volumes in observed.values()
                if not isinstance(volumes, Unknown)
                for volume in volumes
                if volume.phase is VolumePhase.FAILED
            }
        )
        if not failed:
            return observed
        messages = parallel.each(
            lambda volume: self._messages(volume, until), failed, "volume"
        )
        messages_of = dict(zip(failed, messages, strict=True))
        return {
            ref: (
                volumes
                if isinstance(volumes, Unknown)
                else tuple(
                    (
                        translate.explained(volume, messages_of[volume.id])
                        if volume.id in messages_of
                        else volume
                    )
                    for volume in volumes
                )
            )
            for ref, volumes in observed.items()
        }

    def _messages(self, volume_id: VolumeId, until: float) -> Sequence[native.Message]:
        try:
            deadline = min(self._deadline(), until)
            return self._reads.messages(volume_id, deadline)
        except errors.CloudError as error:
            # We chose to degrade: the volume is known, only the cause is not.
            self._log.warning("messages of Cinder can't be read", error=str(error))
            return ()

    def _translated(self, volume: native.Volume) -> Volume:
        if volume.status not in translate.PHASES and volume.status not in (
            self._odd_statuses
        ):
            self._odd_statuses.add(volume.status)
            self._log.warning("unknown volume status", status=volume.status)
        return translate.volume(volume, self._settings)

    def _diagnosed(
        self,
        spec: VolumeSpec,
        error: errors.InvalidRequest | errors.NotFound,
        deadline: float,
    ) -> errors.CloudError:
        """Find out which part of a spec the cloud refuses, and what it would take."""
        placement = parameters.placement(spec)
        zone = placement.zone
        try:
            if spec.type:
                self._require_type(spec.type, "parameter", deadline, error)
            zones = self._reads.zones(deadline) if zone else ()
        except errors.InvalidRequest as clearer:
            return clearer
        except errors.CloudError:
            return error
        if zone and zone not in zones:
            text = (
                f"{config.FieldProblem('zone', zone, 'one of ' + ', '.join(zones))},"
                " or be mapped to one by [BlockStorage] availability-zone-map"
            )
            if placement.is_fixed:
                return _invalid(text, error)
            return errors.Unplaceable(
                text, operation=error.operation, resource=error.resource
            )
        if isinstance(error, errors.NotFound) and spec.source:
            return errors.NotFound(
                "the source volume is absent",
                operation=error.operation,
                resource=spec.source,
                request_id=error.request_id,
            )
        return error

    def _require_type(
        self,
        name: str,
        field: str,
        deadline: float,
        error: errors.CloudError | None,
    ) -> native.VolumeType:
        """Return a type by its name or id.

        Raises:
            InvalidRequest: no such type; the message lists the types.
        """
        types = self._reads.types(deadline)
        for volume_type in types:
            if name in (volume_type.name, volume_type.id):
                return volume_type
        if error is None:  # Cinder may know the type by this name, too
            for volume_type in types:
                if is_same_type(name, volume_type.name):
                    return volume_type
        known = ", ".join(sorted(volume_type.name for volume_type in types))
        problem = config.FieldProblem(f"{field} type", name, f"one of {known}")
        raise _invalid(str(problem), error)

    def _refuse_unshareable(self, spec: VolumeSpec, deadline: float) -> None:
        """Check before: Cinder deletes no volume that is being created."""
        if spec.type:
            type_name = self._require_type(spec.type, "parameter", deadline, None)
        else:
            type_name = self._reads.default_type(deadline)
        if reads.has_multiattach(type_name) is False:
            raise _unshareable(type_name.name)

    def _deadline(self, timeout_s: float = CALL_TIMEOUT_S) -> float:
        return self._api.now() + timeout_s


def _is_there(observed: Found) -> bool:
    return isinstance(observed, tuple) and bool(observed)


def _is_partial(ref: ById, observed: Found) -> bool:
    """Report whether a volume has attachments, not shown yet, that were asked for."""
    if isinstance(observed, Unknown) or not observed:
        return False
    return ref.lacks(observed[0])


def _in_list(
    refs: Collection[Ref], listed: Sequence[Volume], is_complete: bool
) -> dict[Ref, Found]:
    """Find what a list shows; an id that it lacks is omitted.

    So is a name that it lacks, when volumes of the list could not be read.
    """
    by_id = {volume.id: volume for volume in listed}
    names = {ref.name for ref in refs if isinstance(ref, ByName)}
    by_name: dict[str, list[Volume]] = {name: [] for name in names}
    for volume in listed:
        if volume.name in by_name:
            by_name[volume.name].append(volume)
    observed: dict[Ref, Found] = {
        ref: (by_id[ref.id],)
        for ref in refs
        if isinstance(ref, ById) and ref.id in by_id
    }
    return observed | {
        ref: _ordered(by_name[ref.name])
        for ref in refs
        if isinstance(ref, ByName) and is_complete
    }


_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)


def _ordered(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    """Put the oldest first, then by id."""
    return tuple(sorted(volumes, key=lambda v: (v.created_at or _LONG_AGO, v.id)))


def _invalid(message: str, error: errors.CloudError | None) -> errors.InvalidRequest:
    return errors.InvalidRequest(
        message,
        operation=error.operation if error else "list volume types",
        resource=error.resource if error else "",
        request_id=error.request_id if error else "",
    )


def _unshareable(type_name: str) -> errors.InvalidRequest:
    message = (
        f'parameter type: invalid value "{type_name}": must be a type that allows'
        ' attachment to several servers (extra spec multiattach="<is> True")'
    )
    return errors.InvalidRequest(message, operation="create volume")


def _no_server(server_id: str) -> errors.NotFound:
    return errors.NotFound("no server", operation="attach volume", resource=server_id)
