"""The RPCs of CSI's identity service."""

import dataclasses
from collections.abc import Mapping

from lib.cloud.volumes import Feature
from lib.csi.spec import csi_pb2
from lib.volumes import callers

_Service = csi_pb2.PluginCapability.Service
_Expansion = csi_pb2.PluginCapability.VolumeExpansion
_EXPANSIONS: Mapping[Feature, csi_pb2.PluginCapability.VolumeExpansion.Type] = {
    Feature.EXPAND_ONLINE: _Expansion.ONLINE,
    Feature.EXPAND_OFFLINE: _Expansion.OFFLINE,
}


@dataclasses.dataclass(frozen=True, slots=True)
class DriverDescription:
    """Description of the driver.

    has_zones: volumes are accessible from some zones only. features: of the provider.
    """

    name: str
    version: str
    has_controller: bool
    has_zones: bool
    features: frozenset[Feature] = frozenset(Feature)


class IdentityService:
    """Implements the identity service."""

    def __init__(self, driver: DriverDescription) -> None:
        self._driver = driver

    def info(
        self, request: csi_pb2.GetPluginInfoRequest, call: callers.Caller
    ) -> csi_pb2.GetPluginInfoResponse:
        """Return name and version of the driver."""
        del request, call
        return csi_pb2.GetPluginInfoResponse(
            name=self._driver.name, vendor_version=self._driver.version
        )

    def offers(
        self, request: csi_pb2.GetPluginCapabilitiesRequest, call: callers.Caller
    ) -> csi_pb2.GetPluginCapabilitiesResponse:
        """Return the services of the driver, and how volumes are expanded."""
        del request, call
        services = []
        if self._driver.has_controller:
            services.append(_Service.CONTROLLER_SERVICE)
        if self._driver.has_zones:
            services.append(_Service.VOLUME_ACCESSIBILITY_CONSTRAINTS)
        kind = csi_pb2.PluginCapability
        return csi_pb2.GetPluginCapabilitiesResponse(
            capabilities=[
                *(kind(service=_Service(type=service)) for service in services),
                *(
                    kind(volume_expansion=_Expansion(type=type_))
                    for feature, type_ in _EXPANSIONS.items()
                    if feature in self._driver.features
                ),
            ]
        )

    def probe(
        self, request: csi_pb2.ProbeRequest, call: callers.Caller
    ) -> csi_pb2.ProbeResponse:
        """Answer: the process is alive. The health of the cloud is not part of it."""
        del request, call
        return csi_pb2.ProbeResponse()
