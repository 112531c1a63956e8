"""What a running cloud notices when it is adopted from the reference.

docs/migrate-osdpl.md has the same rows.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class RockoonDifference:
    """Setting with its value before and after, and the effect of the change."""

    setting: str
    before: str
    after: str
    effect: str


DIFFERENCES = (
    RockoonDifference(
        "UDP port of VXLAN",
        "4790",
        "4789",
        "hosts with different ports do not reach each other: set"
        " `conf.plugins.openvswitch_agent.agent.vxlan_udp_port` in the values of"
        " neutron",
    ),
    RockoonDifference(
        "`dns_domain` of Neutron",
        "openstack.internal",
        "`internal_domain_name`",
        "names of ports change",
    ),
    RockoonDifference(
        "firewall driver",
        "openvswitch",
        "openvswitch",
        "ports of clouds that had iptables_hybrid have to be plugged again",
    ),
    RockoonDifference(
        "`enforce_scope`, `enforce_new_defaults`",
        "false without `strict_admin`",
        "defaults of the programs",
        "permissions change: set them in `conf.<program>.oslo_policy`",
    ),
    RockoonDifference(
        "`allow_automatic_l3agent_failover`",
        "false",
        "default of the chart",
        "routers move by themselves",
    ),
    RockoonDifference(
        "network policies, clean-up of databases, StackLight",
        "on by preset",
        "off",
        "not supported yet",
    ),
    RockoonDifference(
        "metering of Neutron",
        "on",
        "off",
        "set `service_plugins` in the values",
    ),
    RockoonDifference(
        "novncproxy",
        "network of the pod",
        "network of the host",
        "a port of the control plane Nodes is used",
    ),
    RockoonDifference(
        "worker processes, probes, time-outs of agents",
        "own values",
        "those of the charts",
        "set in `services.<service>.<chart>.values`",
    ),
)
