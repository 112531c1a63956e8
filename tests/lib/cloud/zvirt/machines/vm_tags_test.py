"""Ownership tags of machines: read as written, and never as those of others."""

import pytest

from lib.cloud.zvirt import disk_tags
from lib.cloud.zvirt.machines import vm_tags

TAG = "mooring.io/machine=c-1/u-1"


@pytest.mark.parametrize(
    ("description", "uid", "is_free"),
    [
        (None, "", True),
        ("", "", True),
        ("a worker", "", True),
        (TAG, "u-1", False),
        (f"a worker\n{TAG}", "u-1", False),
        (f"{TAG}\n{TAG}", "u-1", False),
        (f"{TAG}\nmooring.io/machine=c-1/u-2", "", False),
        ("mooring.io/machine=c-2/u-1", "", False),
        (f"x {TAG}", "", True),
        ("mooring.io/cluster=c-1", "", False),
    ],
)
def test_a_description_names_one_owner_or_none(
    description: str | None, uid: str, is_free: bool
) -> None:
    assert vm_tags.uid_of(description, "c-1") == uid
    assert vm_tags.is_free(description) is is_free


def test_the_text_of_a_user_stays() -> None:
    assert vm_tags.added(" a worker ", "c-1", "u-1") == f"a worker\n{TAG}"
    assert vm_tags.added(None, "c-1", "u-1") == TAG


def test_a_boot_disk_is_no_volume() -> None:
    """Otherwise a search for volumes without a PersistentVolume would list it."""
    assert disk_tags.clusters_of(vm_tags.tag("c-1", "u-1")) == ()
    assert disk_tags.tag("c-1") not in vm_tags.tag("c-1", "u-1")
