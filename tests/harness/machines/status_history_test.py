from typing import Any

import pytest

from lib.kube import objects
from lib.lab.dvp.kinds import Item
from tests.harness.machines import status_history


def item(uid: str = "1", provider_id: str = "", **status: Any) -> Item:
    spec = {"providerID": provider_id} if provider_id else {}
    return Item(objects.ObjectMeta(name="one", uid=uid), spec, status)


PROVISIONED = {"provisioned": True}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (item(phase="Running"), item(phase="Running"), []),
        (item(phase="Provisioned"), item(phase="Running"), []),
        (item(phase="Running"), item(phase="Deleting"), []),
        (
            item(phase="Running"),
            item(phase="Provisioned"),
            ["phase was Running, is Provisioned"],
        ),
        (item(phase="Running"), item(phase="Failed"), ["phase was Running, is Failed"]),
        (item(), item(provider_id="dvp://a"), []),
        (
            item(provider_id="dvp://a"),
            item(provider_id="dvp://b"),
            ["spec.providerID was 'dvp://a', is 'dvp://b'"],
        ),
        (
            item(initialization=PROVISIONED),
            item(initialization={}),
            ["status.initialization.provisioned was True, is None"],
        ),
        (item("1"), item("2"), ["it was deleted and created again"]),
    ],
)
def test_steps_back_are_found(before: Item, after: Item, expected: list[str]) -> None:
    assert list(status_history.reversals([None, before, None, after])) == expected
