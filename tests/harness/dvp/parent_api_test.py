"""What tests arrange in a parent in memory is what its definitions admit."""

from typing import Any

import pytest

from lib.cloud.dvp import kinds
from tests.harness.dvp import parent_api

VMS = kinds.VIRTUAL_MACHINES.resource
Json = dict[str, Any]


def vm(spec: Json, **status: object) -> Json:
    about = {"name": "a", "namespace": "project"}
    return {"metadata": about, "spec": spec, "status": status}


ROWS = {
    "a VM without what its definition requires": (vm({}), "spec.cpu: is required"),
    "a field that no definition names": (
        vm(parent_api.vm_spec(size="2Gi")),
        "spec.size: unknown field",
    ),
    "a phase that does not exist": (
        vm(parent_api.vm_spec(), phase="Quantum"),
        "'Quantum' is against enum",
    ),
    "a condition without a time": (
        vm(
            parent_api.vm_spec(),
            conditions=[{"type": "Running", "status": "False"}],
        ),
        "lastTransitionTime: is required",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_an_object_that_cannot_exist_is_refused(row: str) -> None:
    """Unless the test says that the parent breaks its own definition."""
    document, text = ROWS[row]
    parent = parent_api.ParentApi()
    with pytest.raises(parent_api.ImpossibleError, match=text):
        parent.put(VMS, document)
    assert not parent.all(VMS)
    parent.put_impossible(VMS, document)
    assert len(parent.all(VMS)) == 1


def test_a_complete_object_is_there() -> None:
    parent = parent_api.ParentApi()
    parent.put(VMS, vm(parent_api.vm_spec(), phase="Running"))
    assert len(parent.all(VMS)) == 1
