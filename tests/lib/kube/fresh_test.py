"""A read contains our own last write, or reports that it does not."""

import typing
from collections.abc import Callable

import pytest

from lib.kube import errors, fresh, resources, store
from lib.kube.fake import api, calls

if typing.TYPE_CHECKING:
    from tests.lib.kube import conftest

Made = tuple[store.Store["conftest.Thing"], fresh.Fresh["conftest.Thing"], list[float]]
Make = Callable[[], Made]


def node(name: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture()
def make(fake: api.FakeApi, thing: type["conftest.Thing"]) -> Make:
    """Return a full store, a reader above it, and the clock, a list of one number."""

    def build() -> Made:
        kept = store.Store(fake, resources.NODES, thing)
        kept.relist()
        clock = [0.0]
        reader = fresh.Fresh(kept, fake, resources.NODES, thing, lambda: clock[0])
        return kept, reader, clock

    return build


def write(fake: api.FakeApi, kept: store.Store["conftest.Thing"], x: int = 1) -> None:
    """Write an object, behind the store's back."""
    written = fake.put(resources.NODES, node("a", x=x))
    metadata = typing.cast(dict[str, str], written["metadata"])
    kept.note_write("a", metadata["resourceVersion"])


def spec(reading: fresh.FreshObject["conftest.Thing"]) -> object:
    return reading.value and reading.value.spec


def test_what_is_current_comes_from_the_store(fake: api.FakeApi, make: Make) -> None:
    """Also that it is not there."""
    fake.put(resources.NODES, node("a"))
    _, reader, _ = make()
    before = len(fake.calls)
    assert (spec(reader.read("a")), reader.read("a").held) == ({}, False)
    assert reader.read("b") == fresh.FreshObject(None)
    assert len(fake.calls) == before


def test_what_lacks_our_write_is_held_and_then_read_directly(
    fake: api.FakeApi, make: Make
) -> None:
    """For as long as HOLD_S from the first time; then from the API server."""
    fake.put(resources.NODES, node("a"))
    kept, reader, clock = make()
    write(fake, kept)
    for at in (0.0, fresh.HOLD_S - 0.1):
        clock[0] = at
        assert reader.read("a").held
    clock[0] = fresh.HOLD_S
    assert (spec(reader.read("a")), reader.read("a").held) == ({"x": 1}, False)
    kept.relist()
    assert spec(reader.read("a")) == {"x": 1}


def test_the_wait_begins_anew_with_the_next_write(
    fake: api.FakeApi, make: Make
) -> None:
    """Once the watch has brought the first one, or the object was forgotten."""
    fake.put(resources.NODES, node("a"))
    kept, reader, clock = make()
    write(fake, kept)
    assert reader.read("a").held
    kept.relist()
    assert not reader.read("a").held
    clock[0] = fresh.HOLD_S
    write(fake, kept, 2)
    assert reader.read("a").held
    clock[0] = 2 * fresh.HOLD_S
    reader.forget("a")
    assert reader.read("a").held


def test_a_direct_read_that_fails_keeps_it_held(fake: api.FakeApi, make: Make) -> None:
    """One that finds nothing says that it is gone."""
    fake.put(resources.NODES, node("a"))
    kept, reader, clock = make()
    write(fake, kept)
    assert reader.read("a").held
    clock[0] = fresh.HOLD_S
    outage = errors.Unavailable("not now", operation="get nodes")
    fake.faults.append(calls.Fault(outage, "get"))
    assert reader.read("a").held
    assert not fake.faults
    fake.remove(resources.NODES, "a")
    assert reader.read("a") == fresh.FreshObject(None)
