"""No object, and no namespace, keeps the Events of others from being sent."""

import collections

from lib.kube import event_queue

Item = tuple[str, int]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def filled(most: int, clock: Clock) -> event_queue.EventQueue[Item]:
    return event_queue.EventQueue[Item](most, clock)


def taken(waiting: event_queue.EventQueue[Item], count: int) -> list[Item]:
    items = [waiting.take(0.0) for _ in range(count)]
    return [item for item in items if item is not None]


def test_an_object_has_a_burst_and_then_one_event_in_5_s() -> None:
    clock = Clock()
    waiting = filled(1000, clock)
    added = sum(waiting.put("shop", "Service shop/web", ("shop", n)) for n in range(99))
    assert added == event_queue.OBJECT_BURST
    assert waiting.put("shop", "Service shop/other", ("shop", 0))
    clock.now += 60.0
    added = sum(waiting.put("shop", "Service shop/web", ("shop", n)) for n in range(99))
    assert added == 12


def test_namespaces_take_turns() -> None:
    waiting = filled(1000, Clock())
    for n in range(500):
        waiting.put("loud", f"Service loud/{n}", ("loud", n))
    for n in range(3):
        waiting.put("quiet", f"Service quiet/{n}", ("quiet", n))
    assert taken(waiting, 6) == [
        ("loud", 0),
        ("quiet", 0),
        ("loud", 1),
        ("quiet", 1),
        ("loud", 2),
        ("quiet", 2),
    ]


def test_a_full_queue_drops_what_the_loudest_namespace_added_last() -> None:
    waiting = filled(10, Clock())
    for n in range(50):
        waiting.put("loud", f"Service loud/{n}", ("loud", n))
    assert all(
        waiting.put("quiet", f"Service quiet/{n}", ("quiet", n)) is False
        for n in range(3)
    )
    items = taken(waiting, 20)
    assert collections.Counter(name for name, _ in items) == {"loud": 7, "quiet": 3}
    assert [n for name, n in items if name == "loud"] == list(range(7))


def test_flush_waits_for_what_is_being_sent() -> None:
    waiting = filled(10, Clock())
    assert waiting.flush(0.0)
    waiting.put("shop", "Service shop/web", ("shop", 1))
    assert not waiting.flush(0.0)
    assert waiting.take(0.0) == ("shop", 1)
    assert not waiting.flush(0.0)
    waiting.sent()
    assert waiting.flush(0.0)
    assert waiting.take(0.0) is None


def test_limits_of_objects_are_bounded() -> None:
    waiting = filled(10, Clock())
    for n in range(event_queue.OBJECTS_MAX + 10):
        waiting.put("shop", f"Service shop/{n}", ("shop", n))
    assert len(waiting._tokens) == event_queue.OBJECTS_MAX
