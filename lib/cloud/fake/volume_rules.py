"""What a cloud that lives in memory has for volumes, and what it allows."""

import dataclasses
from collections.abc import Collection, Mapping

from lib.cloud import errors
from lib.cloud.volumes import (
    UNLIMITED_BYTES,
    Capacity,
    Problems,
    Sizing,
    VolumeChange,
    VolumeId,
    VolumePlace,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
)
from lib.process import config

GIB = 2**30


def _sizing() -> Sizing:
    return Sizing(GIB, GIB, GIB, 1024 * GIB)


@dataclasses.dataclass
class Rules:
    """What the cloud has and allows.

    limit: volumes of one instance. full: zones of the topology that hold no more.
    fallback: the zone of volumes for which an unknown one was asked; empty: refused.
    """

    types: tuple[str, ...] = ("slow", "fast", "shared")
    shareable: tuple[str, ...] = ("shared",)
    zones: tuple[str, ...] = ("z1", "z2")
    full: tuple[str, ...] = ()
    fallback: str = ""
    quota_bytes: int = UNLIMITED_BYTES
    limit: int = 26
    sizing: Sizing = dataclasses.field(default_factory=_sizing)

    def parse(self, request: VolumeRequest) -> VolumeSpec | Problems:
        """Parse a request. Knows the parameters "type" and "zone"."""
        parameters = {**request.parameters, **request.changes}
        kind = parameters.get("type", "")
        zone = parameters.get("zone", "")
        zones = dict.fromkeys((*request.preferred, *request.requisite))
        first, *others = [zone] if zone else zones or [""]
        problems = tuple(
            VolumeProblem(f"parameter {name}", value, "one of " + ", ".join(allowed))
            for name, value, allowed in (
                ("type", kind, self.types),
                ("zone", zone, self.zones),
            )
            if value and value not in allowed
        )
        return problems or VolumeSpec(
            name=request.name,
            size_bytes=request.size_bytes,
            cluster=request.cluster,
            zones=(first,) if first else (),
            places=tuple(VolumePlace((other,)) for other in others),
            type=kind,
            source=request.source,
            is_shared=request.is_shared,
            near=_texts(request.annotations.get("near", "")),
            apart=_texts(request.annotations.get("apart", "")),
            metadata=tuple(request.metadata.items()),
            context=tuple(sorted(request.annotations.items())),
        )

    def parse_change(self, parameters: Mapping[str, str]) -> VolumeChange | Problems:
        """Parse a request for a change. Knows the parameter "type"."""
        problems = tuple(
            VolumeProblem("mutable parameter", key, "type")
            for key in parameters
            if key != "type"
        )
        kind = parameters.get("type", "")
        if kind and kind not in self.types:
            allowed = "one of " + ", ".join(self.types)
            problems += (VolumeProblem("mutable parameter type", kind, allowed),)
        return problems or VolumeChange(kind)

    def capacity(self, type: str, used_bytes: int) -> Capacity:
        """Return what is left of a type, or of all.

        Raises:
            InvalidRequest: there is no such type.
        """
        if type and type not in self.types:
            raise errors.InvalidRequest("no such type", operation="get limits")
        left_bytes = self.quota_bytes
        if left_bytes != UNLIMITED_BYTES:
            left_bytes -= used_bytes
        return Capacity(left_bytes, self.sizing.most_bytes)

    def zones_of(self, spec: VolumeSpec) -> tuple[str, ...]:
        """Return the zones of a volume that is created for a spec."""
        zones = tuple(
            zone if zone in self.zones else self.fallback for zone in spec.zones or ()
        )
        return zones or self.zones[:1]

    def judge(
        self, spec: VolumeSpec, used_bytes: int, existing_ids: Collection[VolumeId]
    ) -> None:
        """Refuse what can't be made. existing_ids: the volumes that a source may be of.

        Raises:
            QuotaExceeded, InvalidRequest, Unplaceable, NotFound: it can't.
        """
        for zone in spec.zones or ():
            is_unknown = zone not in self.zones and not self.fallback
            if zone in self.full or is_unknown:
                text = f"zone {zone} can't hold it"
                raise errors.Unplaceable(text, operation="create volume")
        if used_bytes + spec.size_bytes > self.quota_bytes:
            raise errors.QuotaExceeded("no space is left", operation="create volume")
        if spec.is_shared and spec.type not in self.shareable:
            allowed = "a type whose volumes several instances can have"
            text = str(config.FieldProblem("type", spec.type, allowed))
            raise errors.InvalidRequest(text, operation="create volume")
        if spec.source is not None and spec.source not in existing_ids:
            raise errors.NotFound(
                "no such volume", operation="create volume", resource=spec.source
            )


def _texts(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
