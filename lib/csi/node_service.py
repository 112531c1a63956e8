"""Which method of the node answers which RPC."""

from lib.csi.node import NodeService
from lib.csi.server import RpcService


def node(of: NodeService) -> RpcService:
    """Return the node service."""
    return RpcService(
        "csi.v1.Node",
        {
            "NodeStageVolume": of.stage,
            "NodeUnstageVolume": of.unstage,
            "NodePublishVolume": of.publish,
            "NodeUnpublishVolume": of.unpublish,
            "NodeGetVolumeStats": of.get_stats,
            "NodeExpandVolume": of.expand,
            "NodeGetCapabilities": of.offers,
            "NodeGetInfo": of.get_info,
        },
        may_wait=True,
        immediate=frozenset({"NodeGetCapabilities", "NodeGetInfo"}),
        quiet=frozenset({"NodeGetVolumeStats", "NodeGetCapabilities"}),
    )
