"""Which method answers which RPC."""

from lib.csi.controller import Controller
from lib.csi.identity import Identity
from lib.csi.server import Rpc, Service


def identity(of: Identity) -> Service:
    """Give the identity service."""
    methods: dict[str, Rpc] = {
        "GetPluginInfo": of.info,
        "GetPluginCapabilities": of.offers,
        "Probe": of.probe,
    }
    return Service("csi.v1.Identity", methods, quiet=frozenset(methods))


def controller(of: Controller) -> Service:
    """Give the controller service. Snapshots are not offered."""
    return Service(
        "csi.v1.Controller",
        {
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
        },
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
