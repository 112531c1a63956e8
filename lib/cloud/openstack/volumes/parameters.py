"""What a StorageClass, its claim and the topology ask for, read into a spec: pure."""

import dataclasses
import unicodedata
from collections.abc import Mapping
from typing import Annotated

from lib.cloud.openstack.config.settings import BlockStorage
from lib.cloud.openstack.volumes import translate
from lib.cloud.volumes import (
    Pairs,
    Problems,
    VolumeChange,
    VolumePlace,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
)
from lib.process.documented import Documented

TYPE: Annotated[
    str,
    Documented(
        "Volume type of Cinder.",
        kind="name or ID of a volume type",
        default="the default type of the cloud",
        change="ModifyVolume changes the type of the volume",
    ),
] = "type"
ZONE: Annotated[
    str,
    Documented(
        "Availability zone of Cinder, instead of one chosen by the topology of the"
        " claim. It must be a zone that the Nodes of the topology reach.",
        kind="name of a zone",
        default="chosen by the topology, else by Cinder",
    ),
] = "availability"
AFFINITY: Annotated[
    str,
    Documented(
        "Volumes on whose back end the volume is created.",
        kind="names or IDs, separated by commas",
        default="none",
    ),
] = "cinder.csi.openstack.org/affinity"
ANTI_AFFINITY: Annotated[
    str,
    Documented(
        "Volumes on whose back ends the volume is not created.",
        kind="names or IDs, separated by commas",
        default="none",
    ),
] = "cinder.csi.openstack.org/anti-affinity"
RESIZE = "cinder.csi.openstack.org/resizeRequired"
"""Source, all of them: kubernetes/cloud-provider-openstack
docs/cinder-csi-plugin/using-cinder-csi-plugin.md, pkg/csi/cinder/controllerserver.go.
Parameters that the reference does not know it ignores, and so do we."""
CONTEXT_KEYS = frozenset({AFFINITY, ANTI_AFFINITY, RESIZE})
_SIDECAR_KEYS = (
    "csi.storage.k8s.io/pvc/name",
    "csi.storage.k8s.io/pvc/namespace",
    "csi.storage.k8s.io/pv/name",
)
_LONGEST = 255
"""Source: Cinder API v3, "Volumes": name, and values of metadata."""


@dataclasses.dataclass(frozen=True, slots=True)
class VolumePlacement:
    """The opaque part of a spec. zone: Cinder's; empty: Cinder chooses.

    is_fixed: the zone is that of the StorageClass, not one of the topology's.
    """

    zone: str = ""
    is_fixed: bool = False


def placement(spec: VolumeSpec) -> VolumePlacement:
    """Return the opaque part of a spec; an empty one for another package's spec."""
    own = spec.provider
    return own if isinstance(own, VolumePlacement) else VolumePlacement()


def spec(request: VolumeRequest, settings: BlockStorage) -> VolumeSpec | Problems:
    """Read a request; every problem is named."""
    type_name = request.changes.get(TYPE) or request.parameters.get(TYPE, "")
    written = request.parameters.get(ZONE, "")
    zone, *others = [written] if written else _zones(request, settings)
    zones = translate.node_zones(zone, settings)
    near = _names(request.annotations.get(AFFINITY, ""))
    apart = _names(request.annotations.get(ANTI_AFFINITY, ""))
    name = request.name.strip()  # as Cinder does (validate_name_and_description)
    problems = (
        *_name_problems(request.name, name),
        *_change_problems(request.changes),
        *_zone_problems(request, zones),
        *_affinity_problems(near, apart),
        *_length_problems(request, type_name),
    )
    if problems:
        return problems
    return VolumeSpec(
        name=name,
        size_bytes=request.size_bytes,
        cluster=request.cluster,
        zones=zones,
        type=type_name,
        source=request.source,
        is_shared=request.is_shared,
        near=near,
        apart=apart,
        metadata=_metadata(request),
        context=_context(request),
        provider=VolumePlacement(zone, bool(written)),
        places=tuple(
            VolumePlace(translate.node_zones(other, settings), VolumePlacement(other))
            for other in others
        ),
    )


def change(parameters: Mapping[str, str]) -> VolumeChange | Problems:
    """Read the parameters of a VolumeAttributesClass."""
    return _change_problems(parameters) or VolumeChange(type=parameters.get(TYPE, ""))


def _zones(request: VolumeRequest, settings: BlockStorage) -> list[str]:
    """Return Cinder's zones in the order in which they are tried; "": any.

    The preferred ones first, then the requisite ones. A clone is created in the zone
    of its source, which Cinder chooses by itself.

    Source: CSI specification 1.12, TopologyRequirement: "preferred".
    """
    if request.source is not None:
        return [""]
    zones = (
        translate.volume_zone(zone, settings)
        for zone in (*request.preferred, *request.requisite)
    )
    return list(dict.fromkeys(zones)) or [""]


def _names(text: str) -> tuple[str, ...]:
    """Read names or ids that are separated by commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _metadata(request: VolumeRequest) -> Pairs:
    """Source: kubernetes/cloud-provider-openstack pkg/csi/cinder (CreateVolume)."""
    pairs = [(key, request.metadata.get(key, "")) for key in _SIDECAR_KEYS]
    known = tuple((key, value) for key, value in pairs if value)
    return ((translate.CLUSTER_KEY, request.cluster), *known)


def _context(request: VolumeRequest) -> Pairs:
    pairs = [
        (key, request.annotations[key])
        for key in (AFFINITY, ANTI_AFFINITY)
        if request.annotations.get(key)
    ]
    if request.source is not None:
        # The copy's file system is as large as that of what it was copied from.
        pairs.append((RESIZE, "true"))
    return tuple(pairs)


def _change_problems(changes: Mapping[str, str]) -> Problems:
    unknown = tuple(
        VolumeProblem(f"mutable parameter {key}", value, f"only the parameter {TYPE}")
        for key, value in changes.items()
        if key != TYPE
    )
    if TYPE in changes and not changes[TYPE]:
        empty = VolumeProblem(
            f"mutable parameter {TYPE}", "", "the name of a volume type"
        )
        return (*unknown, empty)
    return unknown


def _zone_problems(request: VolumeRequest, zones: tuple[str, ...] | None) -> Problems:
    """A zone that no Node which may need the volume can reach is a contradiction.

    Source: CSI specification 1.12, TopologyRequirement: requisite.
    """
    written = request.parameters.get(ZONE, "")
    if not written or not zones or not request.requisite:
        return ()
    if set(zones) & set(request.requisite):
        return ()
    reach = ", ".join(request.requisite)
    allowed = f"a zone of volumes that Nodes in {reach} reach (availability-zone-map)"
    return (VolumeProblem(f"parameter {ZONE}", written, allowed),)


def _affinity_problems(near: tuple[str, ...], apart: tuple[str, ...]) -> Problems:
    both = [name for name in near if name in apart]
    allowed = f"volumes that {AFFINITY} does not name as well"
    return tuple(VolumeProblem(f"annotation {ANTI_AFFINITY}", n, allowed) for n in both)


def _name_problems(text: str, name: str) -> Problems:
    """Source: CSI specification 1.12, CreateVolumeRequest: name."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        return (VolumeProblem("name", text, "no control characters"),)
    if text and not name:
        return (VolumeProblem("name", text, "a character that is not a blank"),)
    return ()


def _length_problems(request: VolumeRequest, type_name: str) -> Problems:
    named = {"name": request.name, f"parameter {TYPE}": type_name}
    return tuple(
        VolumeProblem(field, value, f"at most {_LONGEST} characters")
        for field, value in named.items()
        if len(value) > _LONGEST
    )
