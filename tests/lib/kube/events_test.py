import threading
import tracemalloc
import typing

import pytest

from lib.kube import errors, events, resources
from lib.kube.fake import api, calls

if typing.TYPE_CHECKING:
    from tests.lib import conftest as shared

NODE = events.ObjectRef("Node", "n1", "", "n1", "v1")


def node(number: int) -> events.ObjectRef:
    return events.ObjectRef("Node", f"n{number}", "", f"n{number}", "v1")


@pytest.fixture()
def dropped() -> list[None]:
    return []


@pytest.fixture()
def recorder(
    fake: api.FakeApi, clock: "shared.FakeClock", dropped: list[None]
) -> events.Recorder:
    return events.Recorder(
        fake,
        component="cloud-node-controller",
        host="",
        clock=clock,
        dropped=lambda: dropped.append(None),
        poll_s=0.01,
    )


def test_an_event_is_as_client_go_writes_it(
    fake: api.FakeApi, recorder: events.Recorder, running: "shared.Running"
) -> None:
    """Names, times and both ways to name the reporter are the reference's."""
    running(recorder.run)
    recorder.emit(NODE, "Warning", "Broken", "it broke")
    assert recorder.flush(10)
    (event,) = fake.all(resources.EVENTS)
    metadata = typing.cast(dict[str, str], event.pop("metadata"))
    assert (metadata["namespace"], metadata["name"]) == (
        "default",
        f"n1.{1000 * 10**9:x}",
    )
    assert event == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": {
            "kind": "Node",
            "name": "n1",
            "uid": "n1",
            "apiVersion": "v1",
        },
        "reason": "Broken",
        "message": "it broke",
        "source": {"component": "cloud-node-controller"},
        "firstTimestamp": "1970-01-01T00:16:40Z",
        "lastTimestamp": "1970-01-01T00:16:40Z",
        "count": 1,
        "type": "Warning",
        "reportingComponent": "cloud-node-controller",
        "reportingInstance": "",
    }


def test_the_same_again_is_counted_up(
    fake: api.FakeApi,
    recorder: events.Recorder,
    clock: "shared.FakeClock",
    running: "shared.Running",
) -> None:
    """Within an hour one Event is counted up; later, or another, is a new one."""
    running(recorder.run)
    for pause_s, message in ((0, "a"), (60, "a"), (3590, "a"), (1, "b"), (3601, "a")):
        clock.pass_by(pause_s)
        recorder.emit(NODE, "Normal", "R", message)
        assert recorder.flush(10)
    observed = {(e["message"], e["count"], e["lastTimestamp"]) for e in events_of(fake)}
    assert observed == {
        ("a", 3, "1970-01-01T01:17:30Z"),
        ("b", 1, "1970-01-01T01:17:31Z"),
        ("a", 1, "1970-01-01T02:17:32Z"),
    }


def test_a_cause_that_lasts_costs_a_write_a_minute(
    fake: api.FakeApi,
    recorder: events.Recorder,
    clock: "shared.FakeClock",
    running: "shared.Running",
) -> None:
    """Said every 5 s for two minutes: one create, two counts, nothing lost."""
    running(recorder.run)
    for _ in range(25):
        recorder.emit(NODE, "Warning", "CloudUnavailable", "a")
        assert recorder.flush(10)
        clock.pass_by(5)
    assert [call.verb for call in fake.calls] == ["create", "patch", "patch"]
    assert [event["count"] for event in events_of(fake)] == [25]


def events_of(fake: api.FakeApi) -> tuple[dict[str, object], ...]:
    return fake.all(resources.EVENTS)


def test_an_event_that_is_gone_is_made_again(
    fake: api.FakeApi,
    recorder: events.Recorder,
    clock: "shared.FakeClock",
    running: "shared.Running",
) -> None:
    """The API server forgets Events after an hour, or sooner."""
    running(recorder.run)
    recorder.emit(NODE, "Normal", "R", "a")
    assert recorder.flush(10)
    fake.remove(resources.EVENTS, f"n1.{1000 * 10**9:x}", "default")
    clock.pass_by(events.COUNT_EVERY_S)
    recorder.emit(NODE, "Normal", "R", "a")
    assert recorder.flush(10)
    assert [e["count"] for e in fake.all(resources.EVENTS)] == [1]


def test_an_object_with_a_namespace_has_its_events_there(
    fake: api.FakeApi, recorder: events.Recorder, running: "shared.Running"
) -> None:
    """The Event and its object are in one namespace."""
    running(recorder.run)
    about = events.ObjectRef("Service", "web", "shop", "uid-1", "v1")
    recorder.emit(about, "Normal", "R", "m")
    assert recorder.flush(10)
    assert fake.calls[-1].namespace == "shop"


def test_a_burst_is_sent_slowly_and_the_rest_waits(
    fake: api.FakeApi,
    recorder: events.Recorder,
    clock: "shared.FakeClock",
    running: "shared.Running",
    eventually: "shared.Eventually",
) -> None:
    """After the burst, ten a second by the clock."""
    running(recorder.run)
    for n in range(events.BURST + 15):
        recorder.emit(node(n % 4), "Normal", "R", str(n))
    eventually(lambda: len(fake.calls) == events.BURST)
    assert not recorder.flush(0.3)
    assert len(fake.calls) == events.BURST
    clock.pass_by(1)
    eventually(lambda: len(fake.calls) == events.BURST + 10)
    clock.pass_by(1)
    assert recorder.flush(10)
    assert len(events_of(fake)) == events.BURST + 15, "no two have one name"


def test_a_full_queue_drops_and_never_blocks(
    recorder: events.Recorder, dropped: list[None]
) -> None:
    """Without a sender recording still returns; dropped Events are counted."""
    for n in range(events.QUEUE_MAX + 3):
        recorder.emit(node(n), "Normal", "R", str(n))
    assert len(dropped) == 3


@pytest.mark.parametrize(
    "error",
    [errors.Forbidden("no", operation="create"), ZeroDivisionError("a bug")],
)
def test_a_failure_ends_one_event_only(
    fake: api.FakeApi,
    recorder: events.Recorder,
    dropped: list[None],
    running: "shared.Running",
    error: Exception,
) -> None:
    """It is counted as dropped, and the next one is sent."""
    fake.faults.append(calls.Fault(error))
    running(recorder.run)
    recorder.emit(NODE, "Normal", "R", "lost")
    recorder.emit(NODE, "Normal", "R", "sent")
    assert recorder.flush(10)
    assert [e["message"] for e in fake.all(resources.EVENTS)] == ["sent"]
    assert len(dropped) == 1


def test_what_is_remembered_is_bounded(
    fake: api.FakeApi, recorder: events.Recorder
) -> None:
    """Ever new messages do not grow the memory of old ones."""
    for n in range(events.KNOWN_MAX + 10):
        recorder._send(events._Event(NODE, "Normal", "R", str(n)), 1000.0 + n)
    assert len(recorder._known) == events.KNOWN_MAX


def test_a_recorder_stops_when_told(recorder: events.Recorder) -> None:
    """Also while it waits for its budget."""
    stop = threading.Event()
    for n in range(events.BURST + 5):
        recorder.emit(NODE, "Normal", "R", str(n))
    thread = threading.Thread(target=recorder.run, args=(stop,))
    thread.start()
    stop.set()
    thread.join(3)
    assert not thread.is_alive()


def test_long_messages_cost_neither_memory_nor_a_large_event(
    fake: api.FakeApi, recorder: events.Recorder, running: "shared.Running"
) -> None:
    """A user may put 200 KiB into an annotation, and change it time and again."""
    running(recorder.run)
    tracemalloc.start()
    for number in range(events.BURST):
        text = f"annotation is '{number}{'x' * 200_000}'"
        recorder.emit(NODE, "Warning", "Broken", text)
    assert recorder.flush(10)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    messages = [str(event["message"]) for event in fake.all(resources.EVENTS)]
    assert len(messages) == events.BURST
    assert max(map(len, messages)) == events.MESSAGE_MAX
    assert kept < 1024**2, kept


def test_control_characters_reach_no_event(
    fake: api.FakeApi, recorder: events.Recorder, running: "shared.Running"
) -> None:
    """kubectl prints messages to a terminal."""
    running(recorder.run)
    recorder.emit(NODE, "Warning", "Broken", "listener \x1b[2K\x07web\nnext")
    assert recorder.flush(10)
    (event,) = fake.all(resources.EVENTS)
    assert event["message"] == "listener ?[2K?web\nnext"
