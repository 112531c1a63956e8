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
        "firewall driver",
        "openvswitch",
        "openvswitch",
        "ports of clouds that had iptables_hybrid have to be plugged again",
    ),
    RockoonDifference(
        "preset: network policies, clean-up of databases, StackLight, TLS of"
        " public endpoints",
        "on",
        "off; certificates are set, nothing terminates TLS",
        "named by the condition Accepted unless the spec decides; a gateway of your"
        " own terminates TLS",
    ),
    RockoonDifference(
        "log levels of the preset",
        "DEBUG for cinder, neutron, nova and octavia",
        "INFO",
        "set `features.logging`",
    ),
    RockoonDifference(
        "preset: filters of Nova's scheduler",
        "a list with NUMA, aggregates, SameHost, DifferentHost and others",
        "defaults of the chart",
        "set `conf.nova.filter_scheduler.enabled_filters`",
    ),
    RockoonDifference(
        "preset: role that migrates servers",
        "members of the project (policies of Nova and Horizon)",
        "administrators",
        "set `features.policies.nova`",
    ),
    RockoonDifference(
        "preset: gcache of Galera",
        "1024M",
        "default of the chart",
        "a member that was away longer gets a full copy: set"
        " `conf.database.config_override`",
    ),
    RockoonDifference(
        "preset: iSCSI on compute nodes, flavors for tests",
        "on, m1.extra_tiny_test and m1.tiny_test",
        "defaults of the chart",
        "set `conf.enable_iscsi` and `bootstrap.structured.flavors`",
    ),
    RockoonDifference(
        "metering of Neutron",
        "on",
        "off",
        "set `service_plugins` in the values of neutron",
    ),
    RockoonDifference(
        "message bus",
        "own ones for Nova and Neutron from size small on",
        "one",
        "notifications and calls share it",
    ),
    RockoonDifference(
        "users of RabbitMQ",
        "made by the server's chart",
        "made by a Job of each chart",
        "none",
    ),
    RockoonDifference(
        "restart of the L3 agents in an upgrade",
        "by hand (OnDelete)",
        "one Node at a time",
        "routers of a Node move or wait while its agent restarts",
    ),
    RockoonDifference(
        "images: `show_multiple_locations`, CORS, clean-up by a CronJob",
        "set",
        "defaults of the chart",
        "set in `conf.glance`",
    ),
    RockoonDifference(
        "Keystone: `allow_expired_window`, CADF notifications",
        "172800, cadf",
        "defaults of Keystone",
        "long operations fail once a token has expired: set in"
        " `conf.keystone.token`",
    ),
    RockoonDifference(
        "Nova: `cpu_mode`, `live_migration_permit_auto_converge`, swtpm,"
        " workarounds",
        "host-model, true, on, set",
        "`features.nova.vcpu_type`, defaults of Nova",
        "set in `conf.nova.libvirt`",
    ),
    RockoonDifference(
        "etcd: compaction, heartbeat",
        "a CronJob, 500 ms",
        "defaults of the chart",
        "the key space grows: set `manifests.cron_job_db_compact`, if the chart"
        " has it",
    ),
    RockoonDifference(
        "probes of Open vSwitch, libvirt and the agents",
        "own periods",
        "those of the chart",
        "a hanging agent restarts later",
    ),
    RockoonDifference(
        "Horizon: upload of images, sticky sessions, check of passwords",
        "direct, cookie, on",
        "through the pod, one cache, off",
        "set in `conf.horizon.local_settings`",
    ),
    RockoonDifference(
        "monitoring of MariaDB",
        "on",
        "off",
        "no exporter",
    ),
)
