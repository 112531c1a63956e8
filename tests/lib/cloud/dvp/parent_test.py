import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.support import circuit
from lib.kube import errors as kube_errors
from lib.kube import store
from lib.kube.fake import api, calls
from lib.lab.run import waiting
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES
SERVICES = kinds.SERVICES


@pytest.fixture()
def fake() -> api.FakeApi:
    return parent_api.ParentApi()


@pytest.fixture()
def opened(fake: api.FakeApi) -> Iterator[parent.Parent]:
    access = parent.Parent(fake, NAMESPACE, UUID)
    yield access
    access.close()


def vm(name: str, cluster: str = UUID, namespace: str = NAMESPACE) -> dict[str, object]:
    labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: name}
    about = {"name": name, "namespace": namespace, "labels": labels}
    return {"metadata": about, "spec": parent_api.vm_spec()}


def counted(fake: api.FakeApi) -> list[tuple[str, str]]:
    return [(call.verb, call.resource) for call in fake.calls]


def test_a_kind_is_listed_and_watched_once(
    fake: api.FakeApi, opened: parent.Parent
) -> None:
    """Only objects of this cluster in its project are there, for one list and watch."""
    for document in (vm("a"), vm("b", "uuid-b"), vm("c", namespace="other")):
        fake.put(VMS.resource, document)
    for _ in range(3):
        assert list(opened.items(VMS)) == ["project-a/a"]
    waiting.until("the store", lambda: len(fake.calls) == 2)
    assert counted(fake) == [("list", "virtualmachines"), ("watch", "virtualmachines")]


def test_changes_are_hints(fake: api.FakeApi, opened: parent.Parent) -> None:
    """A VM that is created, relabelled to another cluster and back is announced."""
    announced: list[tuple[str, bool]] = []
    opened.on_change(
        VMS, lambda key, old, new: announced.append((key, new is not None))
    )
    opened.items(VMS)
    for document in (vm("a"), vm("a", "uuid-b"), vm("a")):
        fake.put(VMS.resource, document)
    waiting.until("the store", lambda: len(announced) == 3)
    assert announced == [("project-a/a", True), ("project-a/a", False)] + announced[:1]


def test_a_write_is_read_back(fake: api.FakeApi, opened: parent.Parent) -> None:
    """Immediately after a write, no read is stale, also while the watch is late."""
    opened.items(SERVICES)
    body = {"metadata": {"name": "s", "namespace": NAMESPACE}}
    created = opened.create(SERVICES, body)
    assert created.metadata.uid
    assert opened.find(SERVICES, "s") is not None
    labels = {"metadata": {"labels": {"a": "b"}}}
    opened.patch(SERVICES, "s", labels)
    held = opened.find(SERVICES, "s")
    assert held is not None
    assert held.metadata.labels == {"a": "b"}
    opened.delete(SERVICES, "s", held.metadata.uid)
    assert opened.find(SERVICES, "s") is None
    with pytest.raises(errors.NotFound):
        opened.delete(SERVICES, "s")


def test_a_wait_ends_with_the_change(fake: api.FakeApi, opened: parent.Parent) -> None:
    """Who waits for a phase is woken by the watch, without a request."""
    fake.put(VMS.resource, vm("a"))
    opened.items(VMS)
    waiting.until("the store", lambda: len(fake.calls) == 2)
    running = {**vm("a"), "status": {"phase": "Running"}}
    threading.Timer(0.2, lambda: fake.put(VMS.resource, running)).start()
    held = opened.wait(
        VMS, "a", lambda vm_: vm_ is not None and vm_.status.phase == "Running", 60
    )
    assert held is not None
    assert held.status.phase == "Running"
    assert opened.wait(VMS, "none", lambda held: held is not None, 0.1) is None
    assert len(fake.calls) == 2


def test_a_store_that_is_not_up_to_date_is_not_read(fake: api.FakeApi) -> None:
    """What a broken watch showed last is no observation."""
    refusal = kube_errors.Unavailable("connection refused", operation="GET /x")
    fake.faults.append(calls.Fault(refusal, "list"))
    access = parent.Parent(fake, NAMESPACE, UUID)
    with pytest.raises(errors.Unavailable, match="list virtualmachines: connection"):
        access.items(VMS)
    fake.put(VMS.resource, vm("a"))
    waiting.until("the store", lambda: access.store(VMS).synced.is_set())
    waiting.until("the store", lambda: access.store(VMS).failure is None)
    assert list(access.items(VMS)) == ["project-a/a"]
    access.close()


def test_the_recovery_of_each_kind_is_reported(
    fake: api.FakeApi, opened: parent.Parent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the circuit is closed: a key that waits need not wait any longer."""
    monkeypatch.setattr(store, "FIRST_BACKOFF_S", 0.02)
    stores = (opened.store(VMS), opened.store(SERVICES))
    failing: list[int] = []

    def report() -> None:
        failing.append(sum(kept.failure is not None for kept in stores))

    opened.on_recovery(report)
    opened.items(VMS)
    opened.items(SERVICES)
    waiting.until("both are watched", lambda: len(fake.calls) == 4)
    refusal = kube_errors.Unavailable("connection refused", operation="GET /x")
    fake.faults += [calls.Fault(refusal, "watch")] * 4
    fake.faults += [calls.Fault(refusal, "create")] * circuit.FAILURES
    for _ in range(circuit.FAILURES):
        with pytest.raises(errors.Unavailable, match="connection refused"):
            opened.create(SERVICES, {"metadata": {"name": "s", "namespace": "n"}})
    with pytest.raises(errors.Unavailable, match="not called"):
        opened.get(SERVICES, "s")
    assert not failing
    fake.break_watches()
    waiting.until("the faults are used", lambda: not fake.faults)
    waiting.until("both are up to date", lambda: failing[-1:] == [0])
    assert opened.get(SERVICES, "s") is None


def test_objects_are_deleted_by_labels_alone(
    fake: api.FakeApi, opened: parent.Parent
) -> None:
    """Readers see it immediately; without a label nothing is deleted."""
    for name in ("a", "b", "c"):
        fake.put(VMS.resource, vm(name))
    opened.items(VMS)
    with pytest.raises(ValueError, match="labels of what is to be deleted"):
        opened.delete_labelled(VMS, {ownership.HOSTNAME: ""})
    labels = {ownership.CLUSTER: UUID, ownership.HOSTNAME: "b"}
    opened.delete_labelled(VMS, labels)
    assert opened.find(VMS, "b") is None
    assert [opened.find(VMS, name) is None for name in "ac"] == [False, False]


def of(status: int, message: str = "m", about: str = "") -> kube_errors.KubeError:
    kinds_of = {
        401: kube_errors.Unauthorized,
        403: kube_errors.Forbidden,
        404: kube_errors.NotFound,
        409: kube_errors.Conflict,
        410: kube_errors.Gone,
        422: kube_errors.Invalid,
    }
    kind = kinds_of.get(status, kube_errors.Unavailable)
    return kind(message, operation="GET /x", status=status, about=about)


REFUSALS = (
    (of(404, about="virtualmachines/a"), errors.NotFound),
    (of(404, "404 page not held"), errors.Unavailable),
    (of(404, about="namespaces/project-a"), errors.Unavailable),
    (of(401), errors.Unauthenticated),
    (of(403), errors.Forbidden),
    (of(403, "exceeded quota: x, requested: count=1"), errors.QuotaExceeded),
    (of(403, 'admission webhook "w" denied the request: no'), errors.InvalidRequest),
    (of(409), errors.Busy),
    (of(410), errors.Unavailable),
    (of(422), errors.InvalidRequest),
    (of(429), errors.Unavailable),
    (of(500), errors.Unavailable),
    (of(0), errors.Unavailable),
)


@pytest.mark.parametrize(("refusal", "expected"), REFUSALS)
def test_each_refusal_has_its_meaning(
    fake: api.FakeApi,
    opened: parent.Parent,
    refusal: kube_errors.KubeError,
    expected: type[errors.CloudError],
) -> None:
    """Of all that has status 404 only the object itself is absent."""
    fake.faults.append(calls.Fault(refusal, "update"))
    fake.faults.append(calls.Fault(refusal, "patch"))
    with pytest.raises(errors.CloudError) as caught:
        opened.patch(VMS, "a", {})
    assert type(caught.value) is expected
    assert caught.value.was_rejected is (400 <= refusal.status < 500)


def test_only_an_absent_object_is_absent(
    fake: api.FakeApi, opened: parent.Parent
) -> None:
    """A kind that the parent does not serve is no absence of its objects."""
    assert opened.get(VMS, "a") is None
    fake.faults.append(calls.Fault(of(404, "404 page not held"), "get"))
    with pytest.raises(errors.Unavailable, match="does not serve virtualmachines"):
        opened.get(VMS, "a")


@pytest.mark.parametrize(
    "call",
    [lambda access: access.get(VMS, "a"), lambda access: access.serves(VMS)],
    ids=["get", "discover"],
)
def test_a_parent_that_does_not_answer_is_left_alone(
    fake: api.FakeApi,
    opened: parent.Parent,
    call: Callable[[parent.Parent], object],
) -> None:
    """After five failures in a row a call is refused without a request."""
    fake.faults.extend(calls.Fault(of(0)) for _ in range(5))
    for _ in range(5):
        with pytest.raises(errors.Unavailable):
            call(opened)
    before = len(fake.calls)
    with pytest.raises(errors.Unavailable, match="not called") as caught:
        call(opened)
    assert caught.value.retry_after_s is not None
    assert len(fake.calls) == before


class Garbled(api.FakeApi):
    """A proxy in front of the parent answers each request with a page of its own."""

    def request(self, method: str, path: str, **more: Any) -> bytes:
        super().request(method, path, **more)
        return b"<html>s3cret</html>"


CALLS: Mapping[str, Callable[[parent.Parent], object]] = {
    "get virtualmachine": lambda access: access.get(VMS, "a"),
    "list virtualmachines": lambda access: access.list_labelled(VMS, ""),
    "discover virtualmachines": lambda access: access.serves(VMS),
    "create virtualmachine": lambda access: access.create(VMS, vm("b")),
    "patch virtualmachine": lambda access: access.patch(VMS, "a", {}),
}


@pytest.mark.parametrize("operation", CALLS)
def test_an_answer_that_is_no_object_is_no_answer(operation: str) -> None:
    """Its outcome is unknown, and the message does not repeat it."""
    garbled = Garbled()
    garbled.put(VMS.resource, vm("a"))
    access = parent.Parent(garbled, NAMESPACE, UUID)
    with pytest.raises(errors.Unavailable) as caught:
        CALLS[operation](access)
    access.close()
    assert str(caught.value).startswith(operation)
    assert "s3cret" not in str(caught.value)
    assert not caught.value.was_rejected


def test_exchanges_are_counted_by_operation_and_outcome() -> None:
    """The connection's own exchanges are what metrics show, watches included."""
    counted: list[tuple[str, str]] = []
    observe = parent.observed(
        lambda operation, outcome, _: counted.append((operation, outcome))
    )
    observe("GET", "virtualmachines", 200, 0.1)
    observe("PATCH", "services", 409, 0.1)
    observe("POST", "", 0, 0.1)
    assert counted == [
        ("read virtualmachines", "ok"),
        ("patch services", "OperationInProgress"),
        ("create parent", "CloudUnavailable"),
    ]
