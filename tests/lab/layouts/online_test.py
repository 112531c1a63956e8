"""`mooring layouts check --online` with a real cloud: what the inputs name exists."""

import pathlib
from collections.abc import Mapping
from typing import Any

import yaml

from tests.harness.daemons import tool
from tests.harness.layouts import changes, inputs, roots

ROWS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "zones": ({"zones": ["az9"]}, ('zones: invalid value "az9"', "az1, az2, az3")),
    "volume type": (
        {"masterNodeGroup.volumeTypeMap": {"az1": "ssd"}},
        ('volumeTypeMap.az1: invalid value "ssd"', "fast", "slow"),
    ),
    "flavor": (
        {"masterNodeGroup.instanceClass.flavorName": "m9"},
        ('flavorName: invalid value "m9"', "m1.tiny"),
    ),
    "image": (
        {"masterNodeGroup.instanceClass.imageName": "no-image"},
        ('imageName: invalid value "no-image"', "tiny"),
    ),
    "external network": (
        {"standard.externalNetworkName": "nowhere"},
        ('standard.externalNetworkName: invalid value "nowhere"', "public"),
    ),
    "network that is not external": (
        {"standard.externalNetworkName": "lab-net"},
        ("standard.externalNetworkName", "is not external"),
    ),
    "security group": (
        {"masterNodeGroup.instanceClass.additionalSecurityGroups": ["dmz"]},
        ("additionalSecurityGroups", '"dmz"', "default", "more"),
    ),
    "pool": (
        {"nodeGroups": [inputs.group(floatingIPPools=["nowhere"])]},
        ("nodeGroups[0].instanceClass.floatingIPPools", "public"),
    ),
}


def check(
    folder: pathlib.Path, mine: roots.LayoutCluster, change: Mapping[str, Any]
) -> tool.Said:
    document = changes.changed(mine.document, change)
    file = folder / "cluster.yaml"
    cluster = {"kind": "ClusterConfiguration", **inputs.cluster("prod")}
    file.write_text(yaml.safe_dump_all([document, cluster]))
    return tool.mooring("layouts", "check", str(file), "--online")


def test_each_name_that_does_not_exist_is_reported(
    cluster: roots.MakeCluster, tmp_path: pathlib.Path
) -> None:
    mine, user = cluster("Standard")

    valid = check(tmp_path, mine, {})
    refused = {name: check(tmp_path, mine, row[0]) for name, row in ROWS.items()}
    user.connection.compute.create_keypair(name="prod")
    in_use = check(tmp_path, mine, {})
    password = check(tmp_path, mine, {"provider.password": "wrong"})

    assert valid.returncode == 0, valid.stderr
    for name, (_, words) in ROWS.items():
        assert refused[name].returncode == 1
        for text in words:
            assert text in refused[name].stderr, name
    assert "cloud.prefix" in in_use.stderr
    assert "key pair prod" in in_use.stderr
    assert password.returncode == 1
    assert "wrong" not in password.stderr
    print(password.stderr)
