"""Rules for Neutron."""

from collections.abc import Iterator, Mapping

from lib.osdpl.rules.rule import (
    Change,
    Rule,
    at,
    below,
    enabled_since,
    is_before,
    problem,
    rejected,
    required,
)
from lib.process.config import FieldProblem

_SERVICE = "networking"
_NEUTRON = "features.neutron"
_TF, _OVN = "tungstenfabric", "ml2/ovn"
_EXTENSIONS = f"{_NEUTRON}.extensions"
_HARDWARE_FIELDS = ("name", "device_type", "ip", "username")


def _has(change: Change, backend: str) -> bool:
    return bool(at(change.spec, f"{_NEUTRON}.backend") == backend)


def _floating(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.floating_network"
    network = below(change.spec, path)
    is_meant = network.get("enabled") and not _has(change, _TF)
    if is_meant and not network.get("physnet"):
        yield required(f"{path}.physnet", "a physical network")


def _floating_with_tf(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.floating_network"
    network = below(change.spec, path)
    names = ("network_type", "physnet", "segmentation_id")
    present = [name for name in names if network.get(name) not in (None, "")]
    is_meant = network.get("enabled") and _has(change, _TF)
    if is_meant and 0 < len(present) < len(names):
        yield problem(path, ", ".join(present), f"all of {', '.join(names)}, or none")


def _peers(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.bgpvpn"
    bgpvpn = below(change.spec, path)
    if not bgpvpn.get("enabled") or bgpvpn.get("peers"):
        return
    if not at(bgpvpn, "route_reflector.enabled"):
        yield required(f"{path}.peers", "set unless route_reflector.enabled is true")


def _never(backend: str, path: str) -> Rule:
    """Return the rule that a feature is not for a backend."""

    def find(change: Change) -> Iterator[FieldProblem]:
        if _has(change, backend) and at(change.spec, f"{path}.enabled"):
            expected = f"false with {_NEUTRON}.backend {backend}"
            yield problem(f"{path}.enabled", True, expected)

    return Rule(f"{path} without {backend}", _SERVICE, find)


def _vpnaas_with_ovn(change: Change) -> Iterator[FieldProblem]:
    path = f"{_EXTENSIONS}.vpnaas.enabled"
    is_old = is_before(change, "caracal")
    if _has(change, _OVN) and is_old and at(change.spec, path):
        expected = f"false with {_OVN} before OpenStack caracal"
        yield problem(path, True, expected)


def _ovn_since(change: Change) -> Iterator[FieldProblem]:
    if _has(change, _OVN) and is_before(change, "yoga"):
        yield problem(f"{_NEUTRON}.backend", _OVN, "ml2 before OpenStack yoga")


def _ovn_with_tf(change: Change) -> Iterator[FieldProblem]:
    if _has(change, _OVN) and change.spec["preset"] == "compute-tf":
        expected = f"{_TF} with the preset compute-tf"
        yield problem(f"{_NEUTRON}.backend", _OVN, expected)


def _geneve(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.tenant_network_types"
    if "geneve" in (at(change.spec, path) or ()) and not _has(change, _OVN):
        yield rejected(path, f'"geneve": not supported: requires the backend {_OVN}')


def _one_kind_of_switches(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.baremetal.ngs"
    switches = below(change.spec, path)
    if switches.get("devices") and switches.get("hardware"):
        yield rejected(path, "devices: must not be set together with hardware")


def _hardware(change: Change) -> Iterator[FieldProblem]:
    path = f"{_NEUTRON}.baremetal.ngs.hardware"
    hardware = at(change.spec, path)
    if hardware is None:
        return
    if not isinstance(hardware, Mapping):
        yield problem(path, None, "an object of switches by name")
        return
    for name, switch in hardware.items():
        for field in _HARDWARE_FIELDS[1:]:
            if not isinstance(switch, Mapping) or not switch.get(field):
                yield required(f"{path}.{name}.{field}")


RULES: tuple[Rule, ...] = (
    Rule("neutron: physical network of the floating one", _SERVICE, _floating),
    Rule("neutron: peers of BGP VPN", _SERVICE, _peers),
    *(
        _never(_TF, path)
        for path in (
            f"{_NEUTRON}.ipsec",
            f"{_NEUTRON}.bgpvpn",
            f"{_EXTENSIONS}.vpnaas",
            f"{_EXTENSIONS}.dynamic_routing",
            f"{_EXTENSIONS}.portprober",
        )
    ),
    Rule("neutron: floating network of Tungsten Fabric", _SERVICE, _floating_with_tf),
    Rule("neutron: devices or hardware", _SERVICE, _one_kind_of_switches),
    Rule("neutron: hardware", _SERVICE, _hardware),
    Rule("neutron: OVN since yoga", _SERVICE, _ovn_since),
    Rule("neutron: OVN or Tungsten Fabric", _SERVICE, _ovn_with_tf),
    _never(_OVN, f"{_NEUTRON}.bgpvpn"),
    _never(_OVN, f"{_NEUTRON}.ipsec"),
    Rule("neutron: VPN with OVN since caracal", _SERVICE, _vpnaas_with_ovn),
    enabled_since(f"{_EXTENSIONS}.vpnaas.enabled", "yoga", _SERVICE),
    enabled_since(f"{_EXTENSIONS}.dynamic_routing.enabled", "yoga", _SERVICE),
    enabled_since(f"{_EXTENSIONS}.portprober.enabled", "antelope", _SERVICE),
    Rule("neutron: geneve with OVN only", _SERVICE, _geneve),
)
