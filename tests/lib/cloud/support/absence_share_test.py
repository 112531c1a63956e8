"""IDs that users invent cost a bounded number of reads, and no other their turn."""

from collections.abc import Collection
from typing import Any

from lib.cloud import errors
from lib.cloud.support import absence, absence_scope


class Reads:
    """Each read takes 1.5 s of the clock. reads: the IDs, in their order."""

    def __init__(self) -> None:
        self.reads: list[str] = []

    def find(self, id_: str, deadline: float) -> str | None:
        del deadline
        self.reads.append(id_)
        return None

    def has_any(self, ids: Collection[str], deadline: float) -> bool:
        del ids, deadline
        return True


def test_each_observation_reads_some_and_the_next_one_goes_on() -> None:
    reads = Reads()
    guard = absence_scope.Guard(lambda: "project", "")
    words: Any = None
    direct = absence.DirectReads(reads.find, reads.has_any)
    absences = absence.Absences(direct, words, guard, lambda: 1000.0)
    ids = [f"id-{n:04}" for n in range(2 * absence.READS_MAX + 10)]
    answers = absences.complete(ids, (), 2000.0)
    assert len(reads.reads) == absence.READS_MAX
    unread = [id_ for id_, answer in answers.items() if answer is not None]
    assert len(unread) == absence.READS_MAX + 10
    assert all(isinstance(answers[id_], errors.Unavailable) for id_ in unread)
    absences.complete(ids, (), 2000.0)
    absences.complete(ids, (), 2000.0)
    assert set(reads.reads) == set(ids)
