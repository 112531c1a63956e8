"""Entries expire, and nothing else drops them."""

from lib.cloud.support import expiring


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def table(clock: Clock) -> expiring.Expiring[str, int]:
    return expiring.Expiring(10.0, clock)


def test_an_entry_is_kept_for_its_time() -> None:
    """Counted from its own `put`; a second one renews it."""
    clock = Clock()
    kept = table(clock)
    kept.put("a", 1)
    clock.now += 9
    assert kept.get("a") == 1
    kept.put("a", 2)
    clock.now += 9
    assert kept.get("a") == 2
    clock.now += 1
    assert kept.get("a") is None
    assert kept.values() == ()


def test_the_first_value_stays() -> None:
    """Reading does not renew an entry; after its time another one is the first."""
    clock = Clock()
    kept = table(clock)
    assert kept.first("a", 0) == 0
    clock.now += 9
    assert kept.first("a", 2) == 0
    clock.now += 1
    assert kept.first("a", 3) == 3


def test_what_is_dropped_is_gone() -> None:
    """By key, all but some, or by taking it."""
    kept = table(Clock())
    for number, key in enumerate("abcd"):
        kept.put(key, number)
    kept.drop(["a", "unknown"])
    kept.keep(["b", "c", "unknown"])
    assert kept.values() == (1, 2)
    assert kept.take("b") == 1
    assert kept.take("b") is None
    assert kept.values() == (2,)


def test_the_table_does_not_grow() -> None:
    """What has expired is dropped when something else is put."""
    clock = Clock()
    kept = table(clock)
    for number in range(1000):
        kept.put(str(number), number)
        clock.now += 1
    assert len(kept._entries) == 10
