"""Which method answers which RPC of the identity service."""

from lib.csi.identity_service import IdentityService
from lib.csi.server import Rpc, RpcService


def rpcs(of: IdentityService) -> RpcService:
    """Return the identity service."""
    methods: dict[str, Rpc] = {
        "GetPluginInfo": of.info,
        "GetPluginCapabilities": of.offers,
        "Probe": of.probe,
    }
    return RpcService("csi.v1.Identity", methods, quiet=frozenset(methods))
