"""The chart csi-node, as helm renders it; it is installed with the umbrella's test."""

import pytest

from lib.lab import places
from lib.lab.charts import charts
from tests.lab.charts import rendering

CHART = "csi-node"
BAD = [
    ("image=", "'/image': minLength: got 0, want 1"),
    ("image=registry.example/csi-node", "'/image': 'registry.example/csi-node'"),
    ("kubeletDirectory=kubelet", "'/kubeletDirectory': 'kubelet' does not match"),
    ("livenessprobe.port=0", "'/livenessprobe/port': minimum: got 0, want 1"),
    ("registrar.mode=none", "'/registrar/mode': value must be one of"),
    ("snapshotter.image=x", "'snapshotter' not allowed"),
]
"""What is set, what helm must name."""
BAD_DVP = [
    ("cloudConfig.secretName=x", "'/cloudConfig/secretName': maxLength"),
    ("metadataAddress=http://x", "'/metadataAddress': maxLength"),
    ("parent.secretName=x", "'parent' not allowed"),
]
"""The same for DVP, where no value can bring credentials to the Nodes."""


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


def test_bad_values_are_rejected_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD)


def test_bad_values_for_dvp_are_rejected_by_name(renderer: places.Places) -> None:
    rendering.check_refusals(renderer, CHART, BAD_DVP, "dvp")
