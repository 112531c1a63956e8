"""Places of a cloud service: who gets the next one, and how many there are."""

import dataclasses

import pytest

from lib.cloud import steps
from lib.cloud import write_places as vocabulary
from lib.cloud.fake import clock as clocks
from lib.cloud.support import places, write_limit

CREATE, CHANGE, DELETE = steps.Verb.CREATE, steps.Verb.CHANGE, steps.Verb.DELETE


@dataclasses.dataclass
class Ground:
    """Places on a clock that only tests move, and the keys that were called."""

    clock: clocks.Clock = dataclasses.field(default_factory=clocks.Clock)
    start: int = write_limit.START
    called: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = places.AdaptivePlaces(self.clock, self.start)
        self.works: dict[str, vocabulary.Work] = {}

    def enter(
        self,
        name: str,
        verb: steps.Verb = CREATE,
        *,
        group: str = "shop",
        has_begun: bool = False,
    ) -> bool:
        """Report whether an object gets a place now."""
        work = vocabulary.Work(
            name, group, verb, lambda: self.called.append(name), has_begun
        )
        self.works[name] = work
        return self.places.enter(work) == 0

    def read(self, seconds: float = 0.5) -> None:
        """Measure a read of so many seconds."""
        self.clock.move(seconds)
        self.places.measured("list", seconds)

    def one_in_progress(self) -> None:
        """Hold one place, its write answered, and no room for a second yet."""
        self.read()
        assert self.enter("first")
        self.places.answered("first")

    def finish(self, name: str) -> None:
        """The cloud has finished with an object, 20 seconds after the answer."""
        self.places.finished(name, 20.0)

    def order(self) -> list[str]:
        """Finish one object after the other; return those called, in order."""
        order: list[str] = []
        holder = "first"
        while self.called or holder:
            self.called.clear()
            self.finish(holder)
            holder = self.called[0] if self.called else ""
            if holder:
                order.append(holder)
                assert self.places.enter(self.works[holder]) == 0
        return order


def test_the_second_write_waits_for_an_answer_that_shows_room_for_it() -> None:
    ground = Ground()
    ground.one_in_progress()
    assert not ground.enter("second")
    assert ground.places.lacks_answer()
    ground.read()
    assert ground.called == ["second"]
    assert ground.enter("second")


def test_the_second_write_is_not_sent_to_a_cloud_that_is_slowed_by_the_first() -> None:
    ground = Ground()
    ground.one_in_progress()
    assert not ground.enter("second")
    for _ in range(5):
        ground.read(1.0)
    assert ground.called == []
    ground.finish("first")
    assert ground.called == ["second"]


def test_a_cloud_that_says_nothing_gets_the_second_write_after_two_seconds() -> None:
    ground = Ground()
    ground.one_in_progress()
    assert not ground.enter("second")
    ground.clock.move(write_limit.SILENT_S)
    assert ground.enter("second")


def test_what_the_user_has_asked_for_begins_immediately() -> None:
    ground = Ground(start=10)
    assert all(ground.enter(f"object {number}") for number in range(10))
    assert not ground.enter("object 10")


def test_the_object_that_was_begun_before_goes_first() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.enter("new")
    ground.enter("half done", has_begun=True)
    assert ground.order() == ["half done", "new"]


def test_of_equals_the_one_that_waits_longest_goes_first() -> None:
    ground = Ground()
    ground.one_in_progress()
    for name in ("b", "a", "c"):
        ground.clock.move(0.1)
        ground.enter(name)
    ground.enter("b")  # asked again: it keeps its position
    assert ground.order() == ["b", "a", "c"]


def test_a_deletion_is_not_behind_a_hundred_creations() -> None:
    ground = Ground()
    ground.one_in_progress()
    for number in range(100):
        ground.enter(f"new {number}")
    ground.enter("old", DELETE)
    ground.enter("changed", CHANGE)
    assert {"old", "changed"} <= set(ground.order()[:3])


def test_a_namespace_with_a_hundred_objects_does_not_starve_another() -> None:
    ground = Ground()
    ground.one_in_progress()
    for number in range(100):
        ground.enter(f"shop {number}")
        ground.clock.move(0.001)
    ground.enter("mail", group="mail")
    assert "mail" in ground.order()[:2]


def test_a_stuck_object_takes_one_place_and_not_for_ever() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.clock.move(write_limit.SILENT_S)
    assert ground.enter("second")
    ground.places.answered("second")
    assert not ground.enter("third")
    ground.clock.move(places.STUCK_S - 10)
    ground.finish("second")
    assert ground.called == ["third"]  # beside the stuck one
    assert ground.enter("third")
    ground.clock.move(11)
    ground.enter("fourth")
    assert ground.places.standing().held == 1


def test_who_was_called_and_does_not_come_is_passed_over() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.enter("gone")
    ground.clock.move(0.1)
    ground.enter("here")
    ground.finish("first")
    assert ground.called[0] == "gone"
    ground.clock.move(places.COMES_S + 1)
    ground.read()
    assert ground.called[-1] == "here"
    assert ground.enter("here")


def test_who_leaves_the_line_is_called_no_more() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.enter("deleted")
    ground.places.leave("deleted")
    ground.finish("first")
    assert ground.called == []


def test_an_object_that_waits_asks_again_after_two_minutes_then_twice_as_late() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.enter("second")
    work = vocabulary.Work("third", "shop", CREATE, lambda: None)
    waits = []
    for _ in range(4):
        ground.places.answered("first")  # else two seconds of silence make room
        waits.append(ground.places.enter(work))
        ground.clock.move(waits[-1])
    assert waits == [120, 120, 240, 480]


def test_of_a_hundred_that_wait_each_asks_once_and_is_called_once() -> None:
    """Also the time of a hand-over does not grow with their number."""
    ground = Ground()
    ground.one_in_progress()
    for number in range(100):
        assert not ground.enter(f"object {number}")
    assert len(ground.order()) == 100


def test_what_a_cloud_does_in_five_seconds_is_begun_many_times() -> None:
    ground = Ground()
    ground.read()
    assert ground.enter("first")
    ground.places.answered("first")
    ground.places.finished("first", 4.0)
    names = [f"object {number}" for number in range(write_limit.QUICK_PLACES)]
    assert all(map(ground.enter, names))
    assert not ground.enter("one more")
    ground.places.overloaded(30.0)
    for name in names:
        ground.places.finished(name, 4.0)
    assert ground.enter("one more")
    assert not ground.enter("another")


def test_what_ends_before_the_first_poll_gives_its_place_back_with_the_answer() -> None:
    ground = Ground()
    ground.places.bound(1, 1)
    ground.read()
    assert ground.enter("first")
    ground.places.answered("first")
    ground.places.finished("first", 1.0)
    for number in range(places.ACCEPTED):
        assert ground.enter(f"object {number}")
        ground.places.answered(f"object {number}")
    assert ground.places.standing().held == places.ACCEPTED
    assert ground.enter("one more")  # none of them has a place


def test_what_lasts_longer_keeps_its_place_until_its_end() -> None:
    ground = Ground()
    ground.places.bound(1, 1)
    ground.read()
    for name, lasted_s in (("quick", 1.0), ("slow", 20.0)):
        assert ground.enter(name)
        ground.places.answered(name)
        ground.places.finished(name, lasted_s)
    assert ground.enter("next")
    ground.places.answered("next")
    assert not ground.enter("after it")


def test_the_next_in_the_line_learns_when_a_pause_ends_if_the_first_leaves() -> None:
    ground = Ground()
    ground.places.overloaded(0.1, retry_after_s=30)
    assert not ground.enter("first")
    assert not ground.enter("second")
    ground.places.leave("first")
    assert ground.called == ["second"]
    work = ground.works["second"]
    assert ground.places.enter(work) == 30


def test_a_pause_that_the_service_asks_for_is_kept() -> None:
    ground = Ground()
    ground.places.overloaded(0.1, retry_after_s=30)
    ground.clock.move(29)
    assert not ground.enter("first")
    ground.clock.move(1)
    assert ground.enter("first")


def test_a_time_out_halves_the_limit_once_for_all_that_was_sent_before() -> None:
    ground = Ground(start=16)
    ground.clock.move(60)
    for _ in range(10):
        ground.places.overloaded(60.0)
    assert ground.places.standing().limit == 8


def test_the_limit_recovers_within_a_minute_after_a_minute_of_silence() -> None:
    ground = Ground(start=10)
    ground.read()
    for number in range(10):
        assert ground.enter(f"object {number}")
    for _ in range(6):  # requests that time out one after the other
        ground.clock.move(61)
        ground.places.overloaded(60.0)
    assert ground.places.standing().limit == 1
    for number in range(10):
        ground.places.answered(f"object {number}")
    for second in range(60):
        ground.read(1.0 if second < 5 else 0.5)
    assert ground.places.standing().limit >= 10


def test_standing_shows_who_waits_and_for_how_long() -> None:
    ground = Ground()
    ground.one_in_progress()
    ground.enter("second")
    ground.clock.move(0.5)
    assert ground.places.standing() == vocabulary.Standing(2, 1, 1, 0.5)
    assert ground.places.waited_s("second") == 0.5


@pytest.mark.parametrize(
    ("standing", "text"),
    [
        (vocabulary.Standing(8, 0, 0, 0.0, 35.0), ""),
        (vocabulary.Standing(8, 2, 0, 0.0), "Octavia: 2 writes in flight of 2 desired"),
        (
            vocabulary.Standing(2, 2, 6, 4.0, 35.4),
            "Octavia: 2 writes in flight of 8 desired, 35 s each, 6 Services wait",
        ),
    ],
    ids=["idle", "nothing is known", "some wait"],
)
def test_work_in_progress_is_one_line(standing: vocabulary.Standing, text: str) -> None:
    assert standing.text("Octavia", "Services") == text
