"""The likely discovery data of a layout's base infrastructure. Pure."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeGuard

from lib.discovery.openstack import model

Document = Mapping[str, object]

_SECURED = model.PodNetworkMode.DIRECT_WITH_PORT_SECURITY


@dataclasses.dataclass(frozen=True, slots=True)
class _Networks:
    """Names of networks; empty: unknown."""

    internal: str = ""
    external: str = ""
    main: str = ""
    additional: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    """One layout: the key of its settings, and their consequences.

    networks: by the prefix and the external network's name. mode: None when the switch
    internalNetworkSecurity decides.
    """

    block: str
    networks: Callable[[str, str], _Networks]
    mode: model.PodNetworkMode | None = None


_LAYOUTS: Mapping[str, _Layout] = {
    "Standard": _Layout(
        "standard",
        lambda prefix, external: _Networks(prefix, external, main=prefix),
    ),
    "StandardWithNoRouter": _Layout(
        "standardWithNoRouter",
        lambda prefix, external: _Networks(prefix, external, external, prefix),
    ),
    "Simple": _Layout(
        "simple",
        lambda _, external: _Networks(internal=external, main=external),
        model.PodNetworkMode.VXLAN,
    ),
    "SimpleWithInternalNetwork": _Layout(
        # The internal network is that of an existing subnet.
        "simpleWithInternalNetwork",
        lambda _, external: _Networks(external=external),
        _SECURED,
    ),
}


def discovered(document: Document, prefix: str) -> model.Discovered:
    """Return the likely discovery data of a cluster that does not exist yet.

    document: a valid OpenStackClusterConfiguration. prefix: of the names in the cloud;
    without it the networks of two layouts have no name. IDs are never known
    beforehand, so that load balancers have no network yet.

    Source: Deckhouse, cloud-provider-openstack, layouts, cloud_discovery_data.
    """
    layout = _LAYOUTS[str(document["layout"])]
    block = _object(document, layout.block)
    networks = layout.networks(prefix, str(block.get("externalNetworkName") or ""))
    mode = _mode(layout, block)
    has_group = layout.mode is None and mode is _SECURED
    master = _object(_object(document, "masterNodeGroup"), "instanceClass")
    zones = document.get("zones")
    return model.Discovered(
        internal_network_names=_given(networks.internal),
        external_network_names=_given(networks.external),
        pod_network_mode=mode,
        zones=tuple(map(str, zones)) if isinstance(zones, list) else (),
        instances=model.InstanceDefaults(
            ssh_key_pair_name=prefix,
            image_name=str(master.get("imageName") or ""),
            main_network=networks.main,
            additional_networks=_given(networks.additional),
            security_groups=_given(prefix) if has_group else (),
        ),
    )


def is_named_by_prefix(document: Document) -> bool:
    """Report whether a layout names its internal network by the cluster's prefix.

    document: see `discovered`.
    """
    layout = _LAYOUTS[str(document["layout"])]
    return bool(layout.networks("prefix", "").internal)


def _mode(layout: _Layout, block: Document) -> model.PodNetworkMode:
    if layout.mode is None:
        is_open = block.get("internalNetworkSecurity") is False
        return model.PodNetworkMode.DIRECT if is_open else _SECURED
    mode = block.get("podNetworkMode")
    return model.PodNetworkMode(str(mode)) if mode else layout.mode


def _given(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


def _object(document: Document, name: str) -> Document:
    value = document.get(name)
    return value if _is_document(value) else {}


def _is_document(value: object) -> TypeGuard[Document]:
    return isinstance(value, Mapping)
