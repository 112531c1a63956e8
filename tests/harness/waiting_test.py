import pytest

from lib.lab import errors
from tests.harness import waiting


def test_what_is_there_is_not_waited_for() -> None:
    assert waiting.until("it", lambda: True, timeout_s=0) < 1


def test_it_is_looked_at_again_until_it_is_there() -> None:
    looks: list[int] = []

    def seen() -> bool:
        looks.append(1)
        return len(looks) == 3

    waiting.until("it", seen, poll_s=0.001)
    assert len(looks) == 3


def test_what_never_comes_is_told_in_words() -> None:
    """The message has the condition and the time-out."""
    with pytest.raises(errors.LabError, match="not within 0 s: a load balancer"):
        waiting.until("a load balancer", lambda: [], timeout_s=0, poll_s=0.001)
