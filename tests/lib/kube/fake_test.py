"""The fake behaves as the real API server does; tests/lib/lab can ask the real one."""

import threading
import typing

import msgspec
import pytest

from lib.kube import client, errors, resources
from lib.kube.fake import api, calls

Json = dict[str, typing.Any]


def encoded(**document: object) -> bytes:
    return msgspec.json.encode(document)


def created(fake: api.FakeApi, name: str = "n1", **more: object) -> Json:
    body = encoded(metadata={"name": name}, **more)
    return decoded(fake.create(resources.NODES, body, timeout_s=1))


def decoded(body: bytes) -> Json:
    return msgspec.json.decode(body, type=Json)


def patched(fake: api.FakeApi, body: bytes, subresource: str | None = None) -> Json:
    return decoded(
        fake.patch(resources.NODES, "n1", body, subresource=subresource, timeout_s=1)
    )


def test_a_new_object_gets_its_metadata(fake: api.FakeApi) -> None:
    """uid, versions and time are the server's; a second one of the name is refused."""
    metadata = created(fake, spec={"a": 1})["metadata"]
    assert metadata["uid"]
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"].isdecimal()
    with pytest.raises(errors.AlreadyExists):
        created(fake)


def test_a_merge_patch_follows_its_rfc(fake: api.FakeApi) -> None:
    """Objects are merged, null removes, lists are replaced."""
    created(fake, spec={"a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2]})
    changed = patched(fake, encoded(spec={"a": None, "b": {"c": 3}, "e": [4]}))
    assert changed["spec"] == {"b": {"c": 3, "d": 2}, "e": [4]}
    assert changed["metadata"]["generation"] == 2


def test_a_patch_that_changes_nothing_is_no_write(fake: api.FakeApi) -> None:
    """The version stays, and no watch hears of it."""
    before = created(fake, spec={"a": 1})
    assert patched(fake, encoded(spec={"a": 1})) == before


def test_status_and_the_rest_are_written_apart(fake: api.FakeApi) -> None:
    """Each endpoint ignores what belongs to the other."""
    created(fake, spec={"a": 1}, status={"b": 1})
    both = encoded(spec={"a": 2}, status={"b": 2})
    assert patched(fake, both, "status")["spec"] == {"a": 1}
    assert patched(fake, both)["status"] == {"b": 2}
    assert patched(fake, both)["spec"] == {"a": 2}


@pytest.mark.parametrize("subresource", [None, "status"])
def test_a_stale_version_is_a_conflict(
    fake: api.FakeApi, subresource: str | None
) -> None:
    """A patch or update based on another version, or uid, is refused."""
    metadata = created(fake)["metadata"]
    patched(fake, encoded(spec={"a": 1}))
    for field in ("resourceVersion", "uid"):
        old = {field: metadata[field] if field == "resourceVersion" else "another"}
        with pytest.raises(errors.Conflict):
            patched(fake, encoded(metadata=old, status={"x": 1}), subresource)


def test_an_update_needs_a_version(fake: api.FakeApi) -> None:
    """As for Leases: without one it is Invalid, with an old one a Conflict."""
    node = created(fake)
    path = resources.NODES.path(None, "n1")
    bare = encoded(metadata={"name": "n1"})
    with pytest.raises(errors.Invalid):
        fake.request("PUT", path, body=bare, timeout_s=1)
    body = msgspec.json.encode({**node, "spec": {"a": 1}})
    assert b'"a":1' in fake.request("PUT", path, body=body, timeout_s=1)
    with pytest.raises(errors.Conflict):
        fake.request("PUT", path, body=body, timeout_s=1)


def test_a_deletion_heeds_its_preconditions(fake: api.FakeApi) -> None:
    """uid and resourceVersion must both be the object's."""
    metadata = created(fake)["metadata"]
    for wrong in ({"uid": "x"}, {"resourceVersion": "x"}):
        body = encoded(preconditions=wrong)
        with pytest.raises(errors.Conflict):
            fake.delete(resources.NODES, "n1", body=body, timeout_s=1)
    right = {k: metadata[k] for k in ("uid", "resourceVersion")}
    body = encoded(preconditions=right)
    fake.delete(resources.NODES, "n1", body=body, timeout_s=1)
    with pytest.raises(errors.NotFound):
        fake.delete(resources.NODES, "n1", timeout_s=1)


def test_finalizers_hold_an_object(fake: api.FakeApi) -> None:
    """It is only marked, and goes with its last finalizer."""
    body = encoded(metadata={"name": "n1", "finalizers": ["x/y"]})
    fake.create(resources.NODES, body, timeout_s=1)
    fake.delete(resources.NODES, "n1", timeout_s=1)
    (held,) = fake.all(resources.NODES)
    assert typing.cast(Json, held)["metadata"]["deletionTimestamp"]
    patched(fake, encoded(metadata={"finalizers": None}))
    assert fake.all(resources.NODES) == ()


def test_pages_show_one_moment(fake: api.FakeApi) -> None:
    """A continued list has the version and content of its first page."""
    for n in range(3):
        created(fake, f"n{n}")
    first = decoded(fake.list_page(resources.NODES, query={"limit": "2"}, timeout_s=1))
    fake.remove(resources.NODES, "n2")
    query = {"limit": "2", "continue": first["metadata"]["continue"]}
    second = decoded(fake.list_page(resources.NODES, query=query, timeout_s=1))
    assert [i["metadata"]["name"] for i in second["items"]] == ["n2"]
    versions = [p["metadata"]["resourceVersion"] for p in (first, second)]
    assert versions[0] == versions[1]
    with pytest.raises(errors.Gone):
        fake.list_page(resources.NODES, query=query, timeout_s=1)


def test_an_apply_creates_or_merges(fake: api.FakeApi) -> None:
    """Server-side apply, as far as the fake knows it."""
    for manager, spec in (("x", {"a": 1}), ("y", {"c": 3}), ("y", {"b": 2})):
        fake.patch(
            resources.NODES,
            "n1",
            encoded(metadata={"name": "n1"}, spec=spec),
            content_type=client.APPLY_PATCH,
            query={"fieldManager": manager, "force": "true"},
            timeout_s=1,
        )
    # What y applies no longer is removed; what x applied is not touched.
    assert typing.cast(Json, fake.all(resources.NODES)[0])["spec"] == {"a": 1, "b": 2}


def test_a_watch_of_a_part_sees_objects_come_into_it(fake: api.FakeApi) -> None:
    """What joins a selection is added to it, and what leaves is deleted from it."""
    created(fake)
    query = {"labelSelector": "a=b", "resourceVersion": "1"}
    stream = fake.stream(
        resources.NODES.path(), query, connect_timeout_s=1, read_timeout_s=0.05
    )
    for value in ("b", "b", "c"):
        patched(fake, encoded(metadata={"labels": {"a": value}}, spec={"v": value}))
    patched(fake, encoded(metadata={"labels": {"a": "b"}}))
    patched(fake, encoded(spec={"v": "d"}))
    fake.remove(resources.NODES, "n1")
    with stream as lines:
        observed = [decoded(next(lines)) for _ in range(5)]
    types = ["ADDED", "DELETED", "ADDED", "MODIFIED", "DELETED"]
    assert [event["type"] for event in observed] == types
    versions = [
        int(event["object"]["metadata"]["resourceVersion"]) for event in observed
    ]
    assert versions == sorted(set(versions))


def test_a_watch_from_before_the_history_is_gone(fake: api.FakeApi) -> None:
    """After a compaction only newer versions may be watched."""
    created(fake)
    fake.compact()
    stream = fake.stream(
        resources.NODES.path(),
        {"resourceVersion": "1"},
        connect_timeout_s=1,
        read_timeout_s=1,
    )
    with pytest.raises(errors.Gone), stream:
        pass


def test_a_watch_can_be_aborted(fake: api.FakeApi) -> None:
    """Another thread ends it."""
    stream = fake.stream(
        resources.NODES.path(), {}, connect_timeout_s=1, read_timeout_s=30
    )
    with stream as lines:
        timer = threading.Timer(0.05, lines.abort)
        timer.start()
        assert list(lines) == []
        timer.join()


def test_faults_hit_the_call_they_are_meant_for(fake: api.FakeApi) -> None:
    """Once each; before the call it is not carried out, after it its answer is lost."""
    lost = errors.Unavailable("lost", operation="x")
    fake.faults += [
        calls.Fault(lost, verb="create", name=None, resource="nodes"),
        calls.Fault(lost, verb="delete", after=True),
    ]
    with pytest.raises(errors.Unavailable):
        created(fake)
    assert fake.all(resources.NODES) == ()
    created(fake)
    with pytest.raises(errors.Unavailable):
        fake.delete(resources.NODES, "n1", timeout_s=1)
    assert fake.all(resources.NODES) == ()
    assert fake.faults == []


def test_a_walk_can_die_around_each_call(fake: api.FakeApi) -> None:
    """Hooks run before and after each call, and the log names it."""

    class Death(Exception):
        pass

    def die(call: calls.Call) -> None:
        assert call == calls.Call("create", "nodes")
        raise Death

    fake.before_call = die
    with pytest.raises(Death):
        created(fake)
    assert fake.all(resources.NODES) == ()
    fake.before_call, fake.after_call = None, die
    with pytest.raises(Death):
        created(fake)
    assert len(fake.all(resources.NODES)) == 1
    assert [call.is_write for call in fake.calls] == [True, True]


def test_what_the_fake_does_not_know_it_refuses(fake: api.FakeApi) -> None:
    """A wrong answer would be worse than none."""
    created(fake)
    with pytest.raises(NotImplementedError):
        fake.patch(
            resources.NODES,
            "n1",
            b"[]",
            content_type=client.JSON_PATCH,
            timeout_s=1,
        )
    query = {"labelSelector": "a in (b)"}
    with pytest.raises(NotImplementedError):
        fake.list_page(resources.NODES, query=query, timeout_s=1)


def test_two_servers_share_nothing(fake: api.FakeApi) -> None:
    """Each fake is a cluster of its own."""
    created(fake)
    assert api.FakeApi().all(resources.NODES) == ()
