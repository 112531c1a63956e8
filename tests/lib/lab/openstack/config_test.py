"""Every configuration file is whole and says what the services depend on."""

import configparser
import pathlib

import pytest

from lib.lab import places
from lib.lab.openstack import config, layout

WHERE = places.Places(pathlib.Path("/cache"), pathlib.Path("/state"), 21000)
FACTS = config.Facts(
    ports=layout.ports(WHERE),
    data=pathlib.Path("/state/data"),
    share=pathlib.Path("/cache/venv/etc"),
)


def read(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True, allow_no_value=True)
    parser.read_string(text)
    return parser


@pytest.mark.parametrize("name", sorted(config.FILES.values()))
def test_each_file_parses_without_repetition_and_has_nothing_left_to_fill(
    name: str,
) -> None:
    text = config.render(FACTS)[name]

    assert read(text).sections()
    assert "$" not in text


def test_there_is_a_file_for_every_service() -> None:
    assert set(config.FILES) == set(layout.SERVICES)


@pytest.mark.parametrize(
    ("service", "section"),
    [
        (layout.KEYSTONE, "database"),
        (layout.GLANCE, "database"),
        (layout.PLACEMENT, "placement_database"),
        (layout.NOVA, "database"),
        (layout.NEUTRON, "database"),
        (layout.CINDER, "database"),
        (layout.OCTAVIA, "database"),
    ],
)
def test_each_service_uses_its_own_database_on_the_labs_port(
    service: str, section: str
) -> None:
    parser = read(config.render(FACTS)[config.FILES[service]])

    url = parser.get(section, "connection")

    assert url == f"mysql+pymysql://root@127.0.0.1:21015/{service}?charset=utf8"


def test_nova_has_its_second_database_and_the_first_compute_host() -> None:
    parser = read(config.render(FACTS)["nova.conf"])

    assert "/nova_api?" in parser.get("api_database", "connection")
    assert parser.get("DEFAULT", "host") == "compute-1"


def test_every_service_but_keystone_asks_this_labs_keystone_as_itself() -> None:
    files = config.render(FACTS)

    for service in set(layout.SERVICES) - {layout.KEYSTONE}:
        token = dict(read(files[config.FILES[service]]).items("keystone_authtoken"))
        assert token["auth_url"] == "http://127.0.0.1:21008"
        assert token["username"] == service


def test_no_service_writes_outside_the_labs_folders() -> None:
    for text in config.render(FACTS).values():
        for line in text.splitlines():
            _, _, value = line.partition(" = ")
            path = value.removeprefix("file://")
            assert not path.startswith("/") or path.startswith(
                ("/state/data", "/cache/venv/etc")
            ), line


def test_the_databases_option_file_parses_and_keeps_its_socket_path_short() -> None:
    text = config.render_database(
        config.DatabaseFacts(
            tree=pathlib.Path("/cache/mariadb"),
            messages=pathlib.Path("/cache/mariadb/usr/share/mysql"),
            plugins=pathlib.Path("/cache/mariadb/usr/lib/mysql/plugin"),
            data=pathlib.Path("/state/data"),
            port=21015,
        )
    )
    parser = read(text)

    assert parser.get("mariadbd", "port") == "21015"
    assert parser.get("mariadbd", "bind-address") == "127.0.0.1"
    assert "/" not in parser.get("mariadbd", "socket")
    assert "$" not in text
