"""Clients find the lab's cloud through files that only the user can read."""

import pathlib
import stat

import yaml

from lib.lab import places
from lib.lab.openstack import accounts


def test_clouds_yaml_names_user_and_admin_and_is_private(
    tmp_path: pathlib.Path,
) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state", 21000)

    file = accounts.clouds_file(where, accounts.own("walk"))

    clouds = yaml.safe_load(file.read_text())["clouds"]
    assert list(clouds) == ["mooring-lab", "mooring-lab-admin", "mooring-lab-walk"]
    assert clouds["mooring-lab"]["auth"]["auth_url"] == "http://127.0.0.1:21008/v3"
    assert clouds["mooring-lab"]["auth"]["project_name"] == "demo"
    assert clouds["mooring-lab-walk"]["auth"]["username"] == "walk"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_cloud_conf_has_the_account_and_the_public_network(
    tmp_path: pathlib.Path,
) -> None:
    where = places.Places(tmp_path / "cache", tmp_path / "state", 21000)

    text = accounts.cloud_conf(where, accounts.own("walk"))

    assert text.splitlines() == [
        "[Global]",
        'auth-url = "http://127.0.0.1:21008/v3"',
        'username = "walk"',
        'password = "lab"',
        'region = "RegionOne"',
        'tenant-name = "walk"',
        'domain-id = "default"',
        "",
        "[Networking]",
        'public-network-name = "public"',
    ]
