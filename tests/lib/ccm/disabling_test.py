"""A ConfigMap disables a controller as long as it exists."""

from lib.ccm import disabling
from lib.kube import resources
from lib.kube.fake import api as fake_api

KEY = "provider/disable"


def test_it_is_followed_by_its_name_alone() -> None:
    api = fake_api.FakeApi()
    changes: list[bool] = []
    follower = disabling.DisablingConfigMap(
        api, KEY, lambda: changes.append(follower.exists)
    )
    other: dict[str, object] = {"metadata": {"name": "other", "namespace": "provider"}}
    named: dict[str, object] = {
        "metadata": {"name": "disable", "namespace": "provider"}
    }
    api.put(resources.CONFIG_MAPS, other)
    follower.store.relist()
    assert (follower.exists, changes) == (False, [])
    api.put(resources.CONFIG_MAPS, named)
    follower.store.relist()
    assert (follower.exists, changes) == (True, [True])
    api.put(resources.CONFIG_MAPS, {**named, "data": {"a": "b"}})
    follower.store.relist()
    assert changes == [True], "its content is of no consequence"
    api.remove(resources.CONFIG_MAPS, "disable", "provider")
    follower.store.relist()
    assert (follower.exists, changes) == (False, [True, False])
