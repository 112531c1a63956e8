"""oslo-config-validator of the lab's own OpenStack judges what the values produce.

With the lab's own charts, and with those of a checkout of openstack-helm if
MOORING_OPENSTACK_HELM names one.
"""

import pathlib

import pytest
import yaml

from lib.lab import places
from lib.lab.openstack import install
from lib.lab.openstack.install import Install
from tests.harness import testing
from tests.harness.osdpl import cloud_manifests, options, rendering
from tests.harness.osdpl.rendering import Rendered

FEATURES = """

logging:
  keystone: {level: DEBUG}
  glance: {level: DEBUG}
  placement: {level: DEBUG}
  neutron: {level: DEBUG}
  nova: {level: DEBUG}
  horizon: {level: DEBUG}
neutron:
  tunnel_interface: ens3
  dns_servers: [192.0.2.53]
  tenant_network_types: [vxlan, vlan]
  extensions: {trunk: {enabled: true}}
  external_networks:
    - {physnet: outside, interface: ens4, bridge: br-outside, network_types: [flat]}
    - {physnet: lan, interface: ens5, bridge: br-lan, network_types: [vlan],
       vlan_ranges: "100:200", mtu: 9000}
nova:
  live_migration_interface: ens3
  vcpu_type: Nehalem,Westmere
  allocation_ratios: {cpu: 4.0, disk: 1.0, ram: 1.2}
  console: {novnc: {enabled: false}, spice: {enabled: true}}
  images: {backend: lvm, lvm: {volume_group: nova}}
"""
"""Every feature whose values reach a configuration file."""
OLD_NAMES = {
    "ml2_conf.ini ml2/tenant_network_types",
    *(
        f"{name}.conf oslo_policy/enforce_scope"
        for name in ("glance-api", "keystone", "neutron", "nova", "placement")
    ),
}
"""Options of the values that the lab's OpenStack, which is newer than gazpacho, calls
otherwise, or does not have any more: older ones read them."""
OF_THE_CHARTS: dict[str, str] = {
    "glance-api.conf DEFAULT": "bind_port enable_v1_api workers",
    "glance-api.conf glance_store": "rbd_store_crush_rule rbd_store_replication",
    "glance-api.conf os_glance_staging_store": "filesystem_store_datadir",
    "glance-api.conf os_glance_tasks_store": "filesystem_store_datadir",
    "glance-api.conf rbd": "rbd_store_ceph_conf rbd_store_chunk_size"
    " rbd_store_crush_rule rbd_store_pool rbd_store_replication rbd_store_user",
    "glance-api.conf swift": "default_swift_reference swift_store_config_file"
    " swift_store_container swift_store_create_container_on_put"
    " swift_store_endpoint_type",
    "neutron.conf DEFAULT": "allow_overlapping_ips api_workers bind_port",
    "neutron.conf designate": "auth_type auth_version endpoint_type",
    "neutron.conf ironic": "auth_type auth_version endpoint_type",
    "neutron.conf nova": "auth_version",
    "neutron.conf octavia": "base_url request_poll_timeout",
    "neutron.conf placement": "auth_type auth_url auth_version",
    "nova.conf DEFAULT": "metadata_listen_port osapi_compute_listen"
    " osapi_compute_listen_port osapi_compute_workers",
    "nova.conf cell0_database": "connection max_retries",
    "nova.conf ironic": "api_endpoint auth_version",
    "nova.conf neutron": "auth_version url",
    "nova.conf placement": "auth_version",
}
"""Options of openstack-helm 2026.1.0 that the samples of the programs do not have, by
file and section: leftovers, stores of Glance by their own names, and options that a
library registers only when it is used."""


@pytest.fixture(scope="module")
def programs(where: places.Places) -> Install:
    """Return the packages of OpenStack that the lab runs."""
    return install.build(where, testing.shown())


def test_no_option_is_unknown(
    rendered: Rendered, programs: Install, tmp_path: pathlib.Path
) -> None:
    """Render a cloud with every feature that is supported."""
    features = yaml.safe_load(FEATURES)
    cloud = rendering.render(rendered.where, rendered.source, tmp_path, features).cloud
    assert options.unjudged(cloud) == set()
    count, listed = options.judge(programs, cloud)
    of_values = {f"{x.file} {x.name}" for x in listed if x.is_ours}
    of_charts = {f"{x.file} {x.name}" for x in listed if not x.is_ours}
    print(f"{count} files; options: {len(of_values)} of values, {len(of_charts)}")
    print(*sorted(of_charts), sep="\n")
    assert count >= len(options.FILES)
    assert of_values <= OLD_NAMES
    known = {
        f"{place}/{option}"
        for place, names in OF_THE_CHARTS.items()
        for option in names.split()
    }
    assert of_charts <= known, of_charts - known


def test_a_planted_option_is_reported(programs: Install) -> None:
    """It is one that Nova does not have, in the values and in the file."""
    values = {"openstack-nova": {"conf": {"nova": {"cell0_database": {"retries": 1}}}}}
    secret = {
        "kind": "Secret",
        "metadata": {"name": "nova-etc"},
        "stringData": {"nova.conf": "[cell0_database]\nretries = 1\n"},
    }
    cloud = cloud_manifests.of_releases({"openstack-nova": [secret]}, values)
    _, (option,) = options.judge(programs, cloud)
    assert (option.name, option.is_ours) == ("cell0_database/retries", True)
