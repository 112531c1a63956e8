"""Golden table of cloud.conf: each key, its field, its default as the reference has it.

Source: kubernetes/cloud-provider-openstack pkg/client/client.go (AuthOpts),
pkg/openstack/openstack.go (NetworkingOpts, RouterOpts, LoadBalancerOpts, LBClass),
pkg/util/metadata, and for [BlockStorage] pkg/csi/cinder/openstack.
"""

import dataclasses
import ipaddress

import pytest
import rich.console
import rich.table

from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings

LOGIN = """
[Global]
auth-url = https://keystone.example/v3
token = t
tenant-id = p
"""


@dataclasses.dataclass(frozen=True)
class Key:
    """One key: what is written, into which field it goes, what it is without."""

    written: str
    field: str
    value: object
    default: object


def text(key: str, room: str = "") -> Key:
    """Return a key of plain text, empty without; its field is named after it."""
    field = key.replace("-", "_")
    return Key("some thing", f"{room}.{field}" if room else field, "some thing", "")


def _texts(room: str, *keys: str) -> dict[str, Key]:
    return {key: text(key, room) for key in keys}


def lb(written: str, field: str, value: object, default: object) -> Key:
    return Key(written, f"load_balancer.{field}", value, default)


def login(written: str, field: str, value: object, default: object) -> Key:
    return Key(written, f"credentials.{field}", value, default)


NETWORKS = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "fd00::/8")))
SUBNETS = (
    "floating-network-id",
    "floating-subnet-id",
    "floating-subnet",
    "floating-subnet-tags",
    "network-id",
    "subnet-id",
    "member-subnet-id",
)
TABLE: dict[str, dict[str, Key]] = {
    "Global": {
        **_texts(
            "credentials",
            "username",
            "user-id",
            "password",
            "user-domain-id",
            "user-domain-name",
            "domain-id",
            "domain-name",
            "tenant-name",
            "tenant-domain-id",
            "tenant-domain-name",
            "trust-id",
            "trustee-id",
            "trustee-password",
            "application-credential-id",
            "application-credential-name",
            "application-credential-secret",
            "region",
            "ca-file",
            "cert-file",
            "key-file",
        ),
        "auth-url": login("http://k/v3", "auth_url", "http://k/v3", None),
        "tenant-id": login("x", "tenant_id", "x", None),
        "token": login("x", "token", "x", None),
        "os-endpoint-type": login("internal", "endpoint_type", "internal", "public"),
        "tls-insecure": login("true", "tls_insecure", True, False),
    },
    "Networking": {
        "ipv6-support-disabled": Key(
            "true", "networking.ipv6_support_disabled", True, False
        ),
        "public-network-name": Key(
            "a b", "networking.public_network_names", ("a b",), ()
        ),
        "internal-network-name": Key(
            "a b", "networking.internal_network_names", ("a b",), ()
        ),
        "address-sort-order": Key(
            "10.0.0.0/8,fd00::/8", "networking.address_sort_order", NETWORKS, ()
        ),
    },
    "Route": {
        "router-id": text("router-id"),
        "address-pairs-only": Key("true", "address_pairs_only", True, False),
    },
    "Metadata": {
        "search-order": Key(
            "metadataService",
            "metadata.search_order",
            ("metadataService",),
            ("configDrive", "metadataService"),
        ),
        "request-timeout": Key("5s", "metadata.request_timeout_s", 5.0, 60.0),
    },
    "LoadBalancer": {
        **_texts(
            "load_balancer",
            *SUBNETS,
            "flavor-id",
            "availability-zone",
            "node-selector",
            "default-tls-container-ref",
        ),
        "enabled": lb("false", "enabled", False, True),
        "lb-version": lb("v2", "lb_version", "v2", ""),
        "lb-provider": lb("ovn", "lb_provider", "ovn", "amphora"),
        "lb-method": lb("SOURCE_IP_PORT", "lb_method", "SOURCE_IP_PORT", "ROUND_ROBIN"),
        "create-monitor": lb("true", "create_monitor", True, False),
        "monitor-delay": lb("2s", "monitor_delay_s", 2.0, 5.0),
        "monitor-timeout": lb("1s", "monitor_timeout_s", 1.0, 3.0),
        "monitor-max-retries": lb("7", "monitor_max_retries", 7, 1),
        "monitor-max-retries-down": lb("7", "monitor_max_retries_down", 7, 3),
        "manage-security-groups": lb("true", "manage_security_groups", True, False),
        "internal-lb": lb("true", "internal_lb", True, False),
        "cascade-delete": lb("false", "cascade_delete", False, True),
        "enable-ingress-hostname": lb("true", "enable_ingress_hostname", True, False),
        "ingress-hostname-suffix": lb(
            "sslip.io", "ingress_hostname_suffix", "sslip.io", "nip.io"
        ),
        "max-shared-lb": lb("7", "max_shared_lb", 7, 2),
        "container-store": lb("external", "container_store", "external", "barbican"),
        "member-cidr": lb("10.0.0.0/8,fd00::/8", "member_cidr", NETWORKS, ()),
        "provider-requires-serial-api-calls": lb(
            "true", "provider_requires_serial_api_calls", True, False
        ),
    },
    'LoadBalancerClass "gold"': {
        key: Key("x", f"load_balancer.classes.gold.{key.replace('-', '_')}", "x", None)
        for key in SUBNETS
    },
    "BlockStorage": {
        "ignore-volume-microversion": Key(
            "true", "block_storage.ignore_volume_microversion", True, False
        ),
        "rescan-on-resize": Key("true", "block_storage.rescan_on_resize", True, False),
        "ignore-volume-az": Key("true", "block_storage.ignore_volume_az", True, False),
        "node-volume-attach-limit": Key(
            "25", "block_storage.node_volume_attach_limit", 25, 256
        ),
        "availability-zone-map": Key(
            "az1:volumes-1",
            "block_storage.availability_zone_map",
            {"az1": "volumes-1"},
            {},
        ),
    },
}
ELSEWHERE = {"use-clouds", "clouds-file", "cloud"}
"""Of [Global]: they name another file; tested in config_test.py."""
OURS = {"BlockStorage": 1, "LoadBalancer": 1, "Route": 1}
"""availability-zone-map, member-cidr, address-pairs-only: not of the reference."""
UNREAD = {"regional", "warnings", "classes", "wait_active_steps"}
"""Fields that come from the environment, or of reading itself, or hold others."""


def at(config: settings.Config, field: str) -> object:
    """Return a field by its path, such as "load_balancer.classes.gold.network_id"."""

    existing: object = config
    for name in field.split("."):
        existing = (
            existing[name] if isinstance(existing, dict) else getattr(existing, name)
        )
    return existing


def read(written: str) -> settings.Config:
    return config.read(written, {}, lambda path: None)


WAYS = {
    "password": "user-id = u",
    "application-credential-secret": "application-credential-id = a",
}
"""Ways to log in beside the token, and what each needs."""


def with_key(section: str, name: str, key: Key) -> str:
    """Write a file in which that key stands, beside what any file needs."""
    line = f'{name} = "{key.written}"\n'
    # There is one way to log in.
    instead = (name, "token") if name in WAYS else (name,)
    login_lines = [
        row for row in LOGIN.splitlines() if row.split(" ")[0] not in instead
    ]
    login = "\n".join(login_lines) + "\n"
    return login + line if section == "Global" else f"{login}[{section}]\n{line}"


ROWS = [(section, name) for section, keys in TABLE.items() for name in keys]


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_each_key_goes_into_its_field(section: str, name: str) -> None:
    """It is known, has its meaning, and without it there is the reference's default."""
    key = TABLE[section][name]
    partners = {"tenant-name": "domain-id = d", **WAYS}
    config = read(f"{with_key(section, name, key)}{partners.get(name, '')}\n")
    assert at(config, key.field) == key.value
    assert not [w for w in config.warnings if "not known" in w]
    if key.default is not None:
        assert at(read(LOGIN), key.field) == key.default


def _fields(room: object, prefix: str = "") -> set[str]:
    if not dataclasses.is_dataclass(room):
        return {prefix.removesuffix(".")}
    names_ = set()
    for field in dataclasses.fields(room):
        if field.name not in UNREAD:
            names_ |= _fields(getattr(room, field.name), f"{prefix}{field.name}.")
    return names_


def test_every_key_of_the_reference_has_its_row() -> None:
    """Prints all; each field of ours is reached by a key, each class key as well."""
    table = rich.table.Table("section", "key", "default", "written", "read as")
    for section, keys in TABLE.items():
        for name, key in keys.items():
            table.add_row(
                section, name, repr(key.default), key.written, repr(key.value)
            )
    rich.console.Console(width=140).print(table)
    reached = {key.field for keys in TABLE.values() for key in keys.values()}
    bare = settings.Config(settings.Credentials())
    classes = _fields(settings.LoadBalancerClass(), "load_balancer.classes.gold.")
    assert reached == _fields(bare) | classes
    assert {section: len(keys) for section, keys in TABLE.items()} == {
        "Global": 28 - len(ELSEWHERE),
        "Networking": 4,
        "Route": 1 + OURS["Route"],
        "Metadata": 2,
        "LoadBalancer": 28 + OURS["LoadBalancer"],
        'LoadBalancerClass "gold"': 7,
        "BlockStorage": 4 + OURS["BlockStorage"],
    }


def test_a_misspelt_required_key_is_named_beside_the_missing_one() -> None:
    text = "[Global]\nauth-url = http://k\nusernme = u\npassword = p\ntenant-id = t\n"
    with pytest.raises(settings.CloudConfError) as caught:
        config.read(text, {})
    print(caught.value)
    assert "[Global] username: not set" in str(caught.value)
    assert "[Global] usernme: unknown key: did you mean username?" in str(caught.value)
