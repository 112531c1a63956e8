"""Schemas of spec.features, spec.nodes and spec.timeouts."""

from lib.osdpl.api import schema_networking
from lib.osdpl.api.schema_types import (
    ANY,
    ANY_OBJECT,
    ANY_SECRETS,
    BOOLEAN,
    INTEGER,
    NUMBER,
    PRESERVE,
    SECRET,
    STRING,
    Schema,
    closed,
    enabled,
    enum,
    fields,
    list_of,
    map_of,
    open_object,
)

SERVICES = (
    "block-storage",
    "cloudprober",
    "compute",
    "identity",
    "dashboard",
    "image",
    "ingress",
    "database",
    "memcached",
    "networking",
    "orchestration",
    "object-storage",
    "messaging",
    "tempest",
    "load-balancer",
    "dns",
    "key-manager",
    "placement",
    "coordination",
    "stepler",
    "baremetal",
    "redis",
    "alarming",
    "event",
    "metering",
    "metric",
    "metric-storage",
    "instance-ha",
    "shared-file-system",
    "dynamic-resource-balancer",
)
"""Services that the spec may name; not all of them are supported yet."""
POLICY_CHARTS = (
    "aodh",
    "barbican",
    "cinder",
    "designate",
    "glance",
    "gnocchi",
    "heat",
    "ironic",
    "keystone",
    "manila",
    "masakari",
    "neutron",
    "nova",
    "octavia",
    "panko",
    "placement",
)
REQUIRED_SERVICES = (
    *("compute", "database", "identity", "image", "memcached", "messaging"),
    *("networking", "placement"),
)
"""Services that others need: a spec can't leave them out."""
_LEFT_OUT = tuple(f"~{name}" for name in SERVICES if name not in REQUIRED_SERVICES)
"""Items that remove a service of the preset."""
LOGGING_CHARTS = (*POLICY_CHARTS, "aetos", "ceilometer", "horizon")
CLEANED = "barbican masakari nova cinder glance heat aodh manila horizon".split()


def features() -> Schema:
    """Return the schema of spec.features."""
    return closed(
        {
            "services": list_of(enum(*SERVICES, *_LEFT_OUT)),
            "network_policies": closed({"enabled": BOOLEAN}),
            "policies": _policies(),
            "ssl": _ssl(),
            "glance": _glance(),
            "database": _database(),
            "telemetry": closed({"mode": enum("autoscaling")}, ("mode",)),
            "designate": _designate(),
            "cloudprober": closed({"discovery": closed({"interval": NUMBER})}),
            "barbican": _barbican(),
            "nova": _nova(),
            "horizon": _horizon(),
            "keystone": _keystone(),
            "neutron": schema_networking.neutron(),
            "messaging": _messaging(),
            "ironic": schema_networking.ironic(),
            "octavia": schema_networking.octavia(),
            "stacklight": _stacklight(),
            "cinder": _cinder(),
            "manila": _manila(),
            "masakari": _masakari(),
            "logging": _logging(),
        },
        required=("neutron", "nova"),
    )


def timeouts() -> Schema:
    """Return the schema of spec.timeouts."""
    wait = closed({"timeout": INTEGER, "delay": INTEGER})
    return closed({"application_readiness": closed({"nova": wait, "neutron": wait})})


def nodes() -> Schema:
    """Return the schema of spec.nodes: overrides of nodes with a label."""
    workloads = map_of(closed({"values": ANY}))
    charts = {
        "load-balancer": ("octavia",),
        "networking": ("openvswitch", "neutron"),
        "metering": ("ceilometer",),
        "metric": ("gnocchi",),
        "compute": ("nova", "libvirt"),
    }
    services = {
        service: closed(fields(workloads, *names)) for service, names in charts.items()
    }
    overridden = {
        "cinder": closed(
            {"volume": closed({"backends": ANY_OBJECT}, ("backends",))},
            required=("volume",),
        ),
        "nova": closed(
            {
                "allocation_ratios": _ratios(),
                "live_migration_interface": STRING,
                "vcpu_type": STRING,
                "images": _images(),
            }
        ),
        "neutron": schema_networking.node_neutron(),
    }
    return map_of(
        closed({"features": closed(overridden), "services": closed(services)})
    )


def _policies() -> Schema:
    strict = closed({"enabled": BOOLEAN})
    return closed({"strict_admin": strict, **fields(ANY, *POLICY_CHARTS)})


def _ssl() -> Schema:
    names = ("ca_cert", "api_cert", "api_key")
    return closed(
        {
            "tls_proxy": enabled(),
            "public_endpoints": closed(fields(SECRET, *names), names),
        }
    )


def _glance() -> Schema:
    pvc = open_object({"size": STRING, "storage_class_name": STRING})
    file_backend = open_object({"default": BOOLEAN, "pvc": pvc}, "pvc")
    cinder = {"default": BOOLEAN, "cinder_volume_type": STRING, "backend_name": STRING}
    rbd = open_object({"default": BOOLEAN, "backend_name": STRING})
    backends = {
        "cinder": map_of(open_object(cinder)),
        "rbd": map_of(rbd),
        "file": map_of(file_backend),
    }
    signature = closed({"enabled": BOOLEAN, "certificate_validation": BOOLEAN})
    return closed({"backends": closed(backends), "signature": signature})


def _database() -> Schema:
    cleanup = closed(
        {"enabled": BOOLEAN, "schedule": STRING, **fields(INTEGER, "age", "batch")}
    )
    remote = enabled(remotes=ANY)
    remote["required"] = ["enabled", "remotes"]
    backup = enabled(
        schedule_time=STRING,
        backup_type=STRING,
        backups_to_keep=INTEGER,
        full_backup_cycle=INTEGER,
        backend=enum("pvc", "pv_nfs", "hostpath"),
        pv_nfs=closed(fields(STRING, "server", "path"), ("server", "path")),
        sync_remote=remote,
        encryption=closed({"enabled": BOOLEAN}),
    )
    return closed({"cleanup": closed(fields(cleanup, *CLEANED)), "backup": backup})


def _designate() -> Schema:
    backend = {
        **fields(STRING, "type", "external_ip"),
        "protocol": enum("udp", "tcp", "tcp+udp"),
    }
    return closed(
        {"backend": closed(backend, ("type", "protocol"))}, required=("backend",)
    )


def _barbican() -> Schema:
    vault = {
        "enabled": BOOLEAN,
        **fields(SECRET, "approle_role_id", "approle_secret_id", "ssl_ca_crt_file"),
        **fields(STRING, "vault_url", "namespace", "kv_mountpoint"),
        "use_ssl": BOOLEAN,
    }
    return closed({"backends": closed({"vault": closed(vault)})})


def _ratios() -> Schema:
    return closed(fields(NUMBER, "cpu", "disk", "ram"))


def _images() -> Schema:
    encryption = {"enabled": BOOLEAN, "cipher": STRING, "key_size": INTEGER}
    return closed(
        {
            "backend": enum("local", "qcow2", "ceph", "lvm", "raw"),
            "encryption": closed(encryption),
            "lvm": closed({"volume_group": STRING}),
        }
    )


def _nova() -> Schema:
    novnc = closed({"enabled": BOOLEAN, "tls": closed({"enabled": BOOLEAN})})
    console = closed({"spice": closed({"enabled": BOOLEAN}), "novnc": novnc})
    return closed(
        {
            "live_migration_interface": STRING,
            "allocation_ratios": _ratios(),
            "libvirt": closed({"tls": closed({"enabled": BOOLEAN})}),
            "vcpu_type": STRING,
            "console": console,
            "images": _images(),
        },
        required=("live_migration_interface",),
    )


def _horizon() -> Schema:
    theme = {
        **fields(STRING, "name", "url", "sha256summ", "description"),
        "enabled": BOOLEAN,
    }
    message = {
        "level": enum("success", "info", "warning", "error"),
        "message": STRING,
        **fields(BOOLEAN, "beforeLogin", "afterLogin"),
    }
    return closed(
        {
            "default_theme": STRING,
            "themes": list_of(closed(theme, ("name",))),
            "motd": map_of(closed(message, ("level", "message"))),
        }
    )


def _keystone() -> Schema:
    names = (
        "project_name",
        "user_domain_name",
        "project_domain_name",
        "default_domain_id",
    )
    provider = closed(
        {
            **fields(STRING, "issuer", "description"),
            "oidc_ca": ANY,
            "enabled": BOOLEAN,
            "mapping": {"type": "array", "items": ANY},
            "oauth2": ANY,
            "metadata": open_object(fields(ANY, "client", "conf", "provider")),
        },
        required=("issuer", "description"),
    )
    openid = enabled(
        oidc=ANY, oidc_auth_type=enum("oauth20", "oauth2"), providers=map_of(provider)
    )
    openid |= {"required": ["enabled", "providers"], PRESERVE: True}
    domain = enabled(name=STRING, config=ANY_OBJECT)
    domain["required"] = ["enabled", "name", "config"]
    return closed(
        {
            "users": closed({"admin": closed(fields(STRING, *names))}),
            "federation": closed({"openid": openid}, required=("openid",)),
            "keycloak": closed({"enabled": BOOLEAN, "url": STRING, "oidc": ANY_OBJECT}),
            "domain_specific_configuration": closed(
                {
                    "enabled": BOOLEAN,
                    "ks_domains": ANY_SECRETS,
                    "domains": list_of(domain),
                }
            ),
        }
    )


def _messaging() -> Schema:
    external = closed({"enabled": BOOLEAN, "topics": list_of(STRING)})
    return closed(
        {
            "components_with_dedicated_messaging": list_of(
                enum("compute", "networking")
            ),
            "notifications": closed({"external": external}),
        }
    )


def _stacklight() -> Schema:
    user = closed(fields(SECRET, "username", "password"))
    return closed({"enabled": BOOLEAN, "user": user})


def _volume_backend(*flags: str) -> Schema:
    values = closed(
        fields(ANY_OBJECT, "conf", "images", "labels", "pod"), required=("conf",)
    )
    properties = {
        "type": enum("statefulset"),
        "values": values,
        **fields(BOOLEAN, "enabled", *flags),
    }
    return map_of(closed(properties, ("type", "values")))


def _cinder() -> Schema:
    driver = {
        "type": enum("s3", "nfs"),
        "enabled": BOOLEAN,
        **fields(STRING, "endpoint_url", "store_bucket", "backup_share"),
        **fields(SECRET, "store_access_key", "store_secret_key"),
    }
    drivers = map_of(closed(driver, ("type", "enabled")))
    backends = _volume_backend("create_volume_type")
    return closed(
        {
            "volume": closed({"enabled": BOOLEAN, "backends": backends}),
            "backup": closed({"enabled": BOOLEAN, "drivers": drivers}),
        }
    )


def _manila() -> Schema:
    return closed({"share": closed({"backends": _volume_backend("create_share_type")})})


def _masakari() -> Schema:
    names = ("interval", "timeout", "failure_threshold")
    introspective = closed(
        {
            "enabled": BOOLEAN,
            **fields(INTEGER, *(f"guest_monitoring_{name}" for name in names)),
        }
    )
    return closed({"monitors": closed({"introspective": introspective})})


def _logging() -> Schema:
    level = closed({"level": enum("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")})
    cadf = enabled(driver=enum("messagingv2", "log"))
    return closed({"cadf": cadf, **fields(level, *LOGGING_CHARTS)})
