"""Names and labels that objects of every module have."""

import pytest

from lib.discovery import manifests

UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"

# Source: Deckhouse, node-manager, names of machine classes.
ZONES = [("zonea", "02320933"), ("zoneb", "6bdb5b0d")]


@pytest.mark.parametrize(("zone", "digits"), ZONES)
def test_zone_hashes_are_the_references(zone: str, digits: str) -> None:
    """Names of classes in a cluster go on being found."""
    assert manifests.zone_hash(UUID, zone) == digits
