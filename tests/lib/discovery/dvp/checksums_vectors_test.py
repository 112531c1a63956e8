"""Checksums that Go's own template engine made, frozen.

`tests/lab/discovery/templates_dvp_test.py` makes them again with the engine.
"""

from typing import Any

import pytest

from lib.discovery.dvp import checksums

BARE: dict[str, Any] = {
    "virtualMachine": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}},
    "rootDisk": {
        "size": "50Gi",
        "image": {"kind": "ClusterVirtualImage", "name": "ubuntu"},
    },
}
FULL: dict[str, Any] = {
    "virtualMachine": {
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": "4Gi"},
        "virtualMachineClassName": "generic-v1",
        "bootloader": "EFIWithSecureBoot",
    },
    "rootDisk": {
        "size": "20Gi",
        "storageClass": "fast",
        "image": {"kind": "VirtualImage", "name": "debian-12"},
    },
    "additionalDisks": [
        {"size": "10Gi", "storageClass": "slow"},
        {"size": "1Ti", "storageClass": "fast"},
    ],
}
VECTORS = [
    (
        "bare",
        BARE,
        "5f6ffc637d75913c3ad7ada7741a917b1274a6f04ff813ef5855b1f0fea58151",
        "001bc6fbb13af1263c16f84b376e7b77e4551ef3727ad7a149149aab6945e771",
    ),
    (
        "full",
        FULL,
        "e2490fed1da294f4b1bbd8c7658b5e7a3becf3326524935f857c8e12dbb92ada",
        "7302d95efe67e6daeb58b291beddd80fcb16d547219362e0427d6022b5d9349f",
    ),
]


@pytest.mark.parametrize(("name", "spec", "old", "new"), VECTORS)
def test_each_vector_holds(name: str, spec: dict[str, Any], old: str, new: str) -> None:
    """No machine of a cluster that changes over is recreated."""
    observed = checksums.of_old_generation(spec), checksums.by_rollout_fields(spec)
    print(f"{name:6} older {observed[0][:12]} newer {observed[1][:12]}")
    assert observed == (old, new)
