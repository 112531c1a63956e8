"""Schema of the spec of an OpenStackDeployment.

Source: the fields that the reference's admission webhook accepts
(rockoon/admission/validators/schemas/osdpl.yaml) and, in addition, the OpenStack
version flamingo and the version and digest of single charts.
"""

from lib.osdpl.api import schema_features
from lib.osdpl.api.schema_types import (
    ANY,
    BOOLEAN,
    SECRETS,
    STRING,
    Schema,
    closed,
    enum,
    list_of,
    open_object,
)

OPENSTACK_VERSIONS = (
    "queens",
    "rocky",
    "stein",
    "train",
    "ussuri",
    "victoria",
    "wallaby",
    "xena",
    "yoga",
    "antelope",
    "caracal",
    "epoxy",
    "flamingo",
    "gazpacho",
    "master",
)
PRESETS = ("compute", "compute-tf", "core")
SIZES = ("single", "tiny", "small", "medium")

INFRA_CHARTS = (
    "ceph-adapter-rook",
    "etcd",
    "libvirt",
    "local-volume-provisioner",
    "mariadb",
    "memcached",
    "openvswitch",
    "ovn",
    "powerdns",
    "rabbitmq",
    "redis",
)
OPENSTACK_CHARTS = (
    "aodh",
    "barbican",
    "ceilometer",
    "ceph-rgw",
    "cinder",
    "designate",
    "glance",
    "gnocchi",
    "heat",
    "horizon",
    "ironic",
    "keystone",
    "manila",
    "masakari",
    "neutron",
    "nova",
    "octavia",
    "placement",
    "tempest",
)

_PIN = {"version": STRING, "digest": {**STRING, "pattern": "^sha256:[0-9a-f]{64}$"}}


def _group(charts: tuple[str, ...]) -> Schema:
    """Return the schema of a group of charts: repository, versions, values."""
    releases = closed({"version": STRING, **dict.fromkeys(charts, closed(_PIN))})
    return closed({"repo": STRING, "releases": releases, "values": SECRETS})


def _common() -> Schema:
    repository = open_object({"name": STRING, "url": STRING}, "name", "url")
    charts = {
        "releases": open_object({"values": SECRETS}),
        "repositories": list_of(repository),
        "values": SECRETS,
    }
    return closed(
        {
            "charts": open_object(charts),
            "infra": _group(INFRA_CHARTS),
            "openstack": _group(OPENSTACK_CHARTS),
        }
    )


def spec() -> Schema:
    """Return the schema of spec."""
    return closed(
        {
            "draft": BOOLEAN,
            "artifacts": closed({"images_base_url": STRING, "binary_base_url": STRING}),
            "region_name": STRING,
            "internal_domain_name": STRING,
            "public_domain_name": {**STRING, "minLength": 1},
            "local_volume_storage_class": STRING,
            "persistent_volume_storage_class": STRING,
            "openstack_version": enum(*OPENSTACK_VERSIONS),
            "preset": enum(*PRESETS),
            "size": enum(*SIZES),
            "common": _common(),
            "services": SECRETS,
            "migration": ANY,
            "nodes": schema_features.nodes(),
            "timeouts": schema_features.timeouts(),
            "features": schema_features.features(),
        },
        required=("openstack_version", "preset", "size", "public_domain_name"),
    )
