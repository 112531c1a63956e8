"""Which method answers which RPC of the controller service."""

from lib.csi.controller import Controller, Kind
from lib.csi.server import Rpc, RpcService

_RPCS = {
    Kind.LIST_VOLUMES: "ListVolumes",
    Kind.GET_CAPACITY: "GetCapacity",
    Kind.EXPAND_VOLUME: "ControllerExpandVolume",
    Kind.MODIFY_VOLUME: "ControllerModifyVolume",
}
"""RPCs that are answered with UNIMPLEMENTED where they are not offered."""


def controller(of: Controller) -> RpcService:
    """Return the controller service: what it offers. Snapshots are not offered."""
    methods: dict[str, Rpc] = {
        "CreateVolume": of.create_volume,
        "DeleteVolume": of.delete_volume,
        "ControllerPublishVolume": of.publish,
        "ControllerUnpublishVolume": of.unpublish,
        "ValidateVolumeCapabilities": of.validate,
        "ListVolumes": of.list_volumes,
        "GetCapacity": of.get_capacity,
        "ControllerGetCapabilities": of.offers,
        "ControllerExpandVolume": of.expand,
        "ControllerGetVolume": of.get_volume,
        "ControllerModifyVolume": of.modify,
    }
    missing = {name for kind, name in _RPCS.items() if kind not in of.offered}
    return RpcService(
        "csi.v1.Controller",
        {name: rpc for name, rpc in methods.items() if name not in missing},
        may_wait=True,
        immediate=frozenset({"ControllerGetCapabilities"}),
        quiet=frozenset(
            {
                "ValidateVolumeCapabilities",
                "ListVolumes",
                "GetCapacity",
                "ControllerGetCapabilities",
                "ControllerGetVolume",
            }
        ),
    )
