"""Objects of the parent are read with fields that are not needed."""

import json

import pytest

from lib.cloud.dvp import kinds
from lib.process import decoding

IMAGE = {"type": "ObjectRef", "objectRef": {"kind": "VirtualImage", "name": "i"}}


@pytest.mark.parametrize("spec", [{}, {"dataSource": IMAGE}, {"dataSource": None}])
def test_a_disk_is_read_wherever_its_data_is_from(spec: object) -> None:
    """One disk that cannot be read would hide all disks of the project."""
    body = json.dumps({"metadata": {"name": "d"}, "spec": spec}).encode()
    assert decoding.decode(body, kinds.VirtualDisk).metadata.name == "d"


def test_texts_of_labels_are_shared_among_vms() -> None:
    """With 100 Services each of 1,000 VMs has 100 labels: 16 MB of equal texts."""
    labels = {"dvp.deckhouse.io/a0": "loadbalancer"}
    body = json.dumps({"metadata": {"name": "v", "labels": labels}}).encode()
    first, second = (decoding.decode(body, kinds.VirtualMachine) for _ in range(2))
    assert first.metadata.labels == labels
    pairs = zip(
        first.metadata.labels.items(), second.metadata.labels.items(), strict=True
    )
    for (key, value), (other_key, other_value) in pairs:
        assert key is other_key
        assert value is other_value
