"""csi-sanity on the real Cinder and Nova, with raw volumes, twice on one state."""

import pathlib

import pytest

from tests.harness.csi import csi_sanity

tools = csi_sanity.tools
ground = csi_sanity.ground


@pytest.mark.parametrize("number", [1, 2])
def test_every_spec_passes_with_raw_volumes(
    ground: csi_sanity.Ground, tmp_path: pathlib.Path, number: int
) -> None:
    """All but those of snapshots and groups."""
    csi_sanity.require_every_spec(ground, tmp_path / f"block-{number}", "block")


def test_nothing_remains(ground: csi_sanity.Ground) -> None:
    """After all of these rounds."""
    csi_sanity.require_nothing_left(ground)
