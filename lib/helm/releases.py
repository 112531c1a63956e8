"""Release Secrets: what helm itself records about releases. Pure.

Source: helm.sh/helm/v4 pkg/storage/driver, secrets.go and util.go.
"""

import base64
import binascii
import datetime
import gzip
import zlib
from collections.abc import Iterable, Mapping

import msgspec

from lib.helm import errors, model
from lib.kube import objects
from lib.process import decoding

TYPE = "helm.sh/release.v1"
SELECTOR = "owner=helm"
PREFIX = "sh.helm.release.v1."
OWN_LABELS = ("name", "owner", "status", "version", "createdAt", "modifiedAt")
SECONDS_DIGITS = 11
"""Of a number of seconds since 1970 that is a time."""
CONTENT_MAX = 64 * 1024 * 1024
"""Bytes of an unpacked release; a Secret holds at most 1 MiB of packed ones."""


class Secret(msgspec.Struct, frozen=True):
    """A Secret with its content."""

    metadata: objects.ObjectMeta
    type: str = ""
    data: Mapping[str, bytes] = {}


class _Info(msgspec.Struct, frozen=True):
    status: str = ""
    description: str = ""
    last_deployed: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Chart(msgspec.Struct, frozen=True):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Release(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    version: int = 0
    manifest: str = ""
    info: _Info = msgspec.field(default_factory=_Info)
    chart: _Chart = msgspec.field(default_factory=_Chart)
    config: dict[str, object] | None = None


def revision(metadata: objects.ObjectMeta) -> model.Revision | None:
    """Return the revision that a Secret's labels describe; None: it has no release."""
    labels = metadata.labels
    number = labels.get("version", "")
    if labels.get("owner") != "helm" or not number.isdecimal() or "name" not in labels:
        return None
    return model.Revision(
        name=labels["name"],
        namespace=metadata.namespace,
        number=int(number),
        status=_status(labels.get("status", "")),
        labels={k: v for k, v in labels.items() if k not in OWN_LABELS},
        secret_name=metadata.name,
        secret_uid=metadata.uid,
        resource_version=metadata.resource_version,
        modified_at=_modified_at(metadata),
    )


def _modified_at(metadata: objects.ObjectMeta) -> datetime.datetime | None:
    """Return when helm wrote a Secret last, as far as it is known.

    An upgrade takes the labels over from the revision before, also those with times:
    they are then older than the Secret, so the latest time counts.

    Source: helm.sh/helm/v4 pkg/storage/driver, secrets.go: seconds since 1970.
    """
    texts = (metadata.labels.get(name, "") for name in ("modifiedAt", "createdAt"))
    times = [
        datetime.datetime.fromtimestamp(int(text), datetime.UTC)
        for text in texts
        if text.isdecimal() and len(text) <= SECONDS_DIGITS
    ]
    if metadata.creation_timestamp is not None:
        times.append(metadata.creation_timestamp)
    return max(times, default=None)


def latest(secrets: Iterable[objects.ObjectMeta]) -> Mapping[str, model.Revision]:
    """Return the newest revision of each release, by "namespace/name"."""
    newest: dict[str, model.Revision] = {}
    for metadata in secrets:
        candidate = revision(metadata)
        if candidate is None:
            continue
        key = f"{candidate.namespace}/{candidate.name}"
        if key not in newest or candidate.number > newest[key].number:
            newest[key] = candidate
    return newest


def decode(secret: Secret) -> model.Release:
    """Unpack a release.

    Raises:
        MalformedRelease: the Secret holds none.
    """
    try:
        # The API's own base64 was undone by the decoder; the second one is helm's.
        content = _unpack(base64.b64decode(secret.data["release"]))
        release = decoding.decode(content, _Release)
    except (KeyError, binascii.Error, OSError, EOFError, zlib.error) as error:
        raise _malformed(secret) from error
    except msgspec.MsgspecError as error:
        raise _malformed(secret) from error
    return model.Release(
        name=release.name,
        namespace=release.namespace or secret.metadata.namespace,
        number=release.version,
        status=_status(release.info.status),
        chart=release.chart.metadata.name,
        chart_version=release.chart.metadata.version,
        description=release.info.description,
        finished_at=_time(release.info.last_deployed),
        values=release.config or {},
        manifest=release.manifest,
    )


def encode(release: Mapping[str, object]) -> bytes:
    """Pack a release as helm does; the API's own base64 is left to the caller."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(release), mtime=0))


def _unpack(packed: bytes) -> bytes:
    if packed[:2] != b"\x1f\x8b":
        return packed
    unpacking = zlib.decompressobj(wbits=31)
    content = unpacking.decompress(packed, CONTENT_MAX)
    if unpacking.unconsumed_tail:
        raise OSError("larger than any release")
    return content


def _malformed(secret: Secret) -> errors.MalformedRelease:
    return errors.MalformedRelease(
        f"Secret {secret.metadata.key}: data.release: must be a release of helm"
    )


def _status(text: str) -> model.Status:
    try:
        return model.Status(text)
    except ValueError:
        return model.Status.UNKNOWN


def _time(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
