"""VirtualMachineClass is read in the version that the platform serves."""

import pytest

from lib.cloud import errors
from lib.cloud.dvp import kinds, parent
from tests.harness.dvp import parent_api

CLASSES = kinds.MACHINE_CLASSES


@pytest.fixture()
def platform() -> parent_api.ParentApi:
    api = parent_api.ParentApi()
    document = {
        "metadata": {"name": "generic"},
        "spec": {"cpu": {"type": "Host"}},
        "status": {"phase": "Ready"},
    }
    api.put(CLASSES.resource, document)
    return api


def names(access: parent.Parent) -> list[str]:
    return [item.metadata.name for item in access.list_labelled(CLASSES, "")]


def requests(platform: parent_api.ParentApi) -> int:
    return sum(call.resource == CLASSES.resource.plural for call in platform.calls)


def test_the_newest_version_costs_no_request_more(
    platform: parent_api.ParentApi,
) -> None:
    """Also where the platform serves the old one as well."""
    access = parent.Parent(platform, "project", "cluster")
    assert names(access) == ["generic"]
    assert requests(platform) == 1


def test_an_older_platform_is_asked_in_its_version(
    platform: parent_api.ParentApi,
) -> None:
    """One request more, once: lists, single objects and a watch."""
    platform.serves_new_classes = False
    access = parent.Parent(platform, "project", "cluster")
    assert names(access) == ["generic"]
    assert names(access) == ["generic"]
    assert access.get(CLASSES, "generic") is not None
    assert access.get(CLASSES, "other") is None
    assert requests(platform) == 5
    assert list(access.items(CLASSES)) == ["generic"]
    access.close()


def test_a_platform_that_is_updated_needs_no_restart(
    platform: parent_api.ParentApi,
) -> None:
    """In both directions."""
    access = parent.Parent(platform, "project", "cluster")
    assert names(access) == ["generic"]
    for platform.serves_new_classes in (False, True):
        platform.serves_old_classes = not platform.serves_new_classes
        assert names(access) == ["generic"]
    platform.serves_new_classes = platform.serves_old_classes = False
    with pytest.raises(errors.Unavailable, match="does not serve"):
        access.list_labelled(CLASSES, "")
    platform.serves_old_classes = True
    assert names(access) == ["generic"]
