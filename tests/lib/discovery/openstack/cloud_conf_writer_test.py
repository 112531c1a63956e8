"""cloud.conf is the reference's, byte for byte, and reads back as what was meant."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings
from lib.discovery.openstack import cloud_conf_writer, model

USUAL = """
[Global]
auth-url = "https://keystone.example:5000/v3"
domain-name = "Default"
tenant-name = "fleet"
username = "captain"
password = "s3cr3t"
region = "north"
[Networking]
public-network-name = "outer"
public-network-name = "public"
internal-network-name = "inner"
ipv6-support-disabled = true
[LoadBalancer]
create-monitor = "true"
monitor-delay = "2s"
monitor-timeout = "1s"
subnet-id = "subnet-1"
floating-network-id = "net-1"
enable-ingress-hostname = true
[BlockStorage]
ignore-volume-microversion = false
rescan-on-resize = true"""
BARE = """
[Global]
auth-url = "https://keystone.example:5000/v3"
domain-name = "Default"
tenant-id = "7"
username = "captain"
password = "s3cr3t"
region = "north"
ca-file = /etc/config/ca.crt
[Networking]
ipv6-support-disabled = true
[LoadBalancer]
create-monitor = "true"
monitor-delay = "2s"
monitor-timeout = "1s"
enable-ingress-hostname = true
[BlockStorage]
ignore-volume-microversion = true
rescan-on-resize = true"""

SUBNET, NETWORK = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))


def test_the_usual_text(provider: model.ProviderSettings) -> None:
    """An empty line first, no line end last, and the order of the reference."""
    text = cloud_conf_writer.render(provider, ignore_volume_microversion=False)
    assert text == USUAL


def test_what_is_not_set_has_no_line(provider: model.ProviderSettings) -> None:
    """Tenant by id, a certificate, no networks and no place for load balancers."""
    connection = dataclasses.replace(
        provider.connection, tenant_name="", tenant_id="7", ca_cert="PEM"
    )
    bare = model.ProviderSettings(connection)
    assert cloud_conf_writer.render(bare, ignore_volume_microversion=True) == BARE


def test_disabled_load_balancers_are_disabled(provider: model.ProviderSettings) -> None:
    """One line more, which openstack-ccm heeds."""
    balancer = dataclasses.replace(provider.load_balancer, disabled=True)
    off = dataclasses.replace(provider, load_balancer=balancer)
    text = cloud_conf_writer.render(off, ignore_volume_microversion=False)
    line = "[LoadBalancer]\nenabled = false\n"
    assert text == USUAL.replace("[LoadBalancer]\n", line)
    assert not read(text).load_balancer.enabled


def read(text: str) -> settings.Config:
    return config.read(text, {})


@hypothesis.given(
    strategies.text('\\"ant#; ж', min_size=1, max_size=8)
    | strategies.text(strategies.characters(exclude_categories=["C"]), min_size=1)
)
def test_any_password_reads_back(password: str) -> None:
    """Quotes, backslashes and all of Unicode survive; openstack-ccm is the reader."""
    connection = model.Connection(
        auth_url="https://keystone.example:5000/v3",
        domain_name="Default",
        username="captain",
        password=password,
        region="north",
        tenant_name="fleet",
    )
    arguments = model.ProviderSettings(
        connection, internal_network_names=('a "b" \\ #;c',)
    )
    observed = read(
        cloud_conf_writer.render(arguments, ignore_volume_microversion=False)
    )
    assert observed.credentials.password == password
    assert (
        observed.networking.internal_network_names == arguments.internal_network_names
    )


@pytest.mark.parametrize("ignore", [True, False])
def test_everything_is_known_to_its_reader(
    provider: model.ProviderSettings, ignore: bool
) -> None:
    """openstack-ccm reads the text without a warning."""
    balancer = model.LoadBalancerPlace(subnet_id=SUBNET, floating_network_id=NETWORK)
    provider = dataclasses.replace(provider, load_balancer=balancer)
    observed = read(
        cloud_conf_writer.render(provider, ignore_volume_microversion=ignore)
    )
    assert observed.warnings == ()
    assert observed.networking.public_network_names == ("outer", "public")
    assert observed.load_balancer.subnet_id == SUBNET
