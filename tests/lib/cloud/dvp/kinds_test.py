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
