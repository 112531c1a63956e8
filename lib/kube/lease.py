"""A Lease as leader election reads and writes it; pure.

Source: client-go tools/leaderelection v0.36, resourcelock LeaderElectionRecord.
"""

import dataclasses
import datetime
import typing

import msgspec

from lib.kube import resources
from lib.process import decoding

WORK_ANNOTATION = "mooring.io/work-in-progress"
"""What the holder is doing, for people and `mooring`; absent while there is nothing."""


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel"):
    """Holder of a Lease; times as the server has them. Empty holder: released."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class _Object(msgspec.Struct, frozen=True):
    metadata: "_Metadata"
    spec: LeaseRecord = LeaseRecord()


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as it was read.

    whole: all of the object, so that a write keeps what others put there. work: see
    WORK_ANNOTATION.
    """

    version: str
    record: LeaseRecord
    whole: dict[str, object] = dataclasses.field(repr=False)
    work: str = ""


def parse(body: bytes) -> Lease:
    """Read a Lease.

    Raises:
        msgspec.ValidationError: it isn't one.
    """
    known = decoding.decode(body, _Object)
    whole = decoding.decode(body, dict[str, object])
    work = known.metadata.annotations.get(WORK_ANNOTATION, "")
    return Lease(known.metadata.resource_version, known.spec, whole, work)


def renewed(
    old: LeaseRecord | None, identity: str, lease_s: float, now: datetime.datetime
) -> LeaseRecord:
    """Return the record by which `identity` takes the Lease, or keeps it."""
    time = micro_time(now)
    is_held = old is not None and old.holder_identity == identity
    transitions = old.lease_transitions + (not is_held) if old is not None else 0
    return LeaseRecord(
        holder_identity=identity,
        lease_duration_seconds=max(round(lease_s), 1),
        acquire_time=old.acquire_time if is_held and old is not None else time,
        renew_time=time,
        lease_transitions=transitions,
    )


def released(old: LeaseRecord, now: datetime.datetime) -> LeaseRecord:
    """Return the record that releases the Lease for the next candidate."""
    time = micro_time(now)
    return LeaseRecord(
        holder_identity="",
        lease_duration_seconds=1,
        acquire_time=time,
        renew_time=time,
        lease_transitions=old.lease_transitions,
    )


def body(
    old: Lease | None, record: LeaseRecord, namespace: str, name: str, work: str = ""
) -> bytes:
    """Return the object to be written: `old` with this record, or a new one.

    work: see WORK_ANNOTATION.
    """
    fields = typing.cast(dict[str, object], msgspec.to_builtins(record))
    if old is None:
        whole: dict[str, object] = {
            "apiVersion": resources.LEASES.api_version,
            "kind": resources.LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": fields,
        }
    else:
        spec = typing.cast(dict[str, object], old.whole.get("spec") or {})
        whole = {**old.whole, "spec": {**spec, **fields}}
    if work or (old is not None and old.work):
        whole["metadata"] = _with_work(whole["metadata"], work)
    return msgspec.json.encode(whole)


def _with_work(metadata: object, work: str) -> dict[str, object]:
    about = typing.cast(dict[str, object], metadata)
    annotations = typing.cast(dict[str, str], about.get("annotations") or {})
    kept = {key: annotations[key] for key in annotations if key != WORK_ANNOTATION}
    return {**about, "annotations": kept | ({WORK_ANNOTATION: work} if work else {})}


def micro_time(now: datetime.datetime) -> str:
    """Write a time of day (UTC) as the API server does.

    Source: apimachinery meta/v1 MicroTime.
    """
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
