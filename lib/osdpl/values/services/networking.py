"""Values of the service networking: Neutron with Open vSwitch."""

from collections.abc import Iterator
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Password
from lib.osdpl.values.service import Chart, Pool, Service
from lib.osdpl.values.services import common
from lib.process import config

_AGENTS_ON_GATEWAYS = ("agent.dhcp", "agent.l3", "agent.metadata")
_AGENTS_OFF = ("daemonset_sriov_agent", "daemonset_lb_agent")
_BRIDGE = "br-ex"
DNS_DOMAIN = "openstack.internal."
"""Domain of instances, as in the reference: not that of the cluster."""
VXLAN_PORT = 4790
"""As in the reference: hosts with another port are not reached. Not 4789, which the
network of the cluster itself may use."""
_L3_EXTENSIONS = "fip_qos,gateway_ip_qos"


def openvswitch(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart openvswitch."""
    return common.infra(context, contract)


def neutron(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart neutron."""
    labels = dict.fromkeys(_AGENTS_ON_GATEWAYS, common.GATEWAY)
    if "netns_cleanup_cron" in contract.labels:
        # It removes what agents leave: wherever Open vSwitch runs, as in the reference.
        labels["netns_cleanup_cron"] = "openvswitch"
    agents = {name: False for name in _AGENTS_OFF if name in contract.manifests}
    own = {
        "network": {
            "backend": ["openvswitch"],
            "interface": {
                "tunnel": context.require("features.neutron.tunnel_interface")
            },
        },
        "manifests": agents,
        # Its hook Job waits for Nova's API, and Nova's agents wait for Neutron.
        "bootstrap": {"enabled": False},
        # The name of a host is its short one, as in the reference.
        "pod": {"use_fqdn": {"neutron_agent": False}},
        "conf": _conf(context),
    }
    base = common.openstack(context, contract, "networking", labels)
    return common.join(base, own, common.program(context, "neutron"))


def metadata_secret(context: Context) -> str:
    """Return the secret that Nova and the metadata agents share."""
    secret = secret_shapes.service_secret("networking")
    return context.credentials.text(secret, "metadata_secret")


def _conf(context: Context) -> model.Tree:
    shared = {"DEFAULT": {"metadata_proxy_shared_secret": metadata_secret(context)}}
    servers = context.get("features.neutron.dns_servers", [])
    conf: model.Tree = {
        "neutron": {"DEFAULT": _default(context)},
        "metadata_agent": shared,
        "ovn_metadata_agent": shared,
        "auto_bridge_add": _bridges(context),
        "plugins": _plugins(context),
        "l3_agent": {"AGENT": {"extensions": _L3_EXTENSIONS}},
    }
    if servers:
        dns = {"dnsmasq_dns_servers": ",".join(servers)}
        conf["dhcp_agent"] = {"DEFAULT": dns}
    return conf


def _default(context: Context) -> model.Tree:
    plugins = ["router", "qos"]
    if context.get("features.neutron.extensions.trunk.enabled"):
        plugins.append("trunk")
    return {
        "core_plugin": "ml2",
        "service_plugins": ",".join(plugins),
        "dns_domain": DNS_DOMAIN,
        # Routers move by hand: an agent that is restarted for long keeps its own.
        "allow_automatic_l3agent_failover": False,
        "dhcp_agents_per_network": 1 if context.get("size") == "single" else 2,
    }


def _networks(context: Context) -> list[dict[str, Any]]:
    return list(context.get("features.neutron.external_networks", []))


def _bridges(context: Context) -> model.Tree:
    """Return the interface of each bridge; null: the bridge has none."""
    bridges = {
        network["bridge"]: network.get("interface") for network in _networks(context)
    }
    return bridges or {_BRIDGE: None}


def _plugins(context: Context) -> model.Tree:
    networks = _networks(context)
    mappings = [f"{network['physnet']}:{network['bridge']}" for network in networks]
    types = context.get("features.neutron.tenant_network_types") or ["vxlan"]
    mtus = [
        f"{network['physnet']}:{network['mtu']}"
        for network in networks
        if network.get("mtu")
    ]
    ml2: dict[str, Any] = {
        "extension_drivers": "port_security,qos",
        "mechanism_drivers": "openvswitch,l2population",
        "type_drivers": "flat,vlan,vxlan,local",
        "tenant_network_types": ",".join(types),
    }
    if mtus:
        ml2["physical_network_mtus"] = ",".join(mtus)
    vlans = {"network_vlan_ranges": ",".join(_vlan_ranges(networks))}
    conf: model.Tree = {"ml2": ml2, "ml2_type_vxlan": {"vni_ranges": "1:65535"}}
    if vlans["network_vlan_ranges"]:
        conf["ml2_type_vlan"] = vlans
    ovs = {"bridge_mappings": ",".join(mappings) or f"external:{_BRIDGE}"}
    agent = {
        "ovs": ovs,
        "agent": {"extensions": "qos", "vxlan_udp_port": VXLAN_PORT},
        # The chart's driver, iptables_hybrid, does not filter subports of trunks.
        "securitygroup": {"firewall_driver": "openvswitch"},
    }
    return {"ml2_conf": conf, "openvswitch_agent": agent}


def _vlan_ranges(networks: list[dict[str, Any]]) -> list[str]:
    """Return the VLAN ranges of the physical networks that have VLANs."""
    ranges = []
    for network in networks:
        if "vlan" not in network["network_types"]:
            continue
        limits = network.get("vlan_ranges")
        ranges += [
            f"{network['physnet']}:{limit}"
            for limit in (limits or "").split(",")
            if limit
        ] or [network["physnet"]]
    return ranges


def _problems(context: Context) -> Iterator[config.FieldProblem]:
    path = "features.neutron.backend"
    backend = context.get(path)
    if backend != "ml2":
        yield config.FieldProblem(f"spec.{path}", backend, "ml2")


SERVICE = Service(
    name="networking",
    charts=(
        Chart(name="openvswitch", release="openstack-openvswitch", values=openvswitch),
        Chart(
            name="neutron",
            release="openstack-neutron",
            values=neutron,
            needs=("database", "memcached", "messaging", "identity"),
            is_long=True,
            replicas={
                "server": (1, 3, 3, 12),
                "rpc_server": (1, 3, 3, 12),
                "ironic_agent": (1, 1, 1, 1),
            },
            budgets={"server": (0, 2, 2, 2)},
            pool=Pool(sections=("database",), max_overflow=(10, 70, 70, 70)),
            # Source: the reference, templates/size; the API is run by uWSGI here.
            settings={
                "neutron_api_uwsgi.uwsgi.processes": (4, 2, 16, 16),
                "neutron.DEFAULT.rpc_workers": (4, 2, 16, 16),
                "neutron.DEFAULT.rpc_state_report_workers": (2, 2, 4, 4),
                "neutron.DEFAULT.agent_down_time": (95, 95, 95, 190),
                "neutron.agent.report_interval": (30, 30, 30, 60),
                "neutron.DEFAULT.executor_thread_pool_size": (20, 70, 70, 70),
                "plugins.openvswitch_agent.ovs.of_connect_timeout": 300,
                "plugins.openvswitch_agent.ovs.of_request_timeout": 300,
                "plugins.openvswitch_agent.ovs.of_inactivity_probe": 30,
                "plugins.openvswitch_agent.ovs.ovsdb_timeout": 30,
            },
            # Not the agent of routers, which the reference restarts by hand.
            in_parallel=("dhcp_agent", "metadata_agent", "ovs_agent"),
            daemonsets=(
                "neutron_dhcp-agent",
                "neutron_l3-agent",
                "neutron_metadata-agent",
                "neutron_netns-cleanup-cron",
                "neutron_ovs-agent",
            ),
        ),
    ),
    defaults={"neutron": {"backend": "ml2"}},
    user="neutron",
    accounts=("neutron", "nova", "placement", "designate", "ironic", "test"),
    passwords=(("metadata_secret", Password()), ("ipsec_secret_key", Password(16))),
    endpoints={"network": ("neutron", "api")},
    node_features=("neutron",),
    unsupported=(
        "features.neutron.dvr.enabled",
        "features.neutron.bgpvpn.enabled",
        "features.neutron.ipsec.enabled",
        "features.neutron.floating_network.enabled",
        "features.neutron.baremetal",
        "features.neutron.extensions.vpnaas.enabled",
        "features.neutron.extensions.dynamic_routing.enabled",
        "features.neutron.extensions.portprober.enabled",
    ),
    problems=_problems,
)
