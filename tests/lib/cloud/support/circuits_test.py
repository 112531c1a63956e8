"""Circuits are told apart by service, shown, and let one probe pass at a time."""

import pytest

from lib.cloud import errors
from lib.cloud.support import circuit, circuits


class Ground:
    """Circuits of two services, on a clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0
        self.shown: list[tuple[str, bool]] = []
        self.held = circuits.Circuits(
            ("compute", "network"),
            lambda service, is_open: self.shown.append((service, is_open)),
            lambda: self.now,
        )

    def call(self, error: Exception | None = None, service: str = "compute") -> None:
        with self.held.call(service, "list servers"):
            if error is not None:
                raise error

    def open(self) -> None:
        for _ in range(circuit.FAILURES):
            with pytest.raises(errors.Unavailable, match="down"):
                self.call(errors.Unavailable("down", operation="list servers"))


def test_each_service_is_shown_from_the_start_and_when_it_changes() -> None:
    """So that a gauge exists before anything fails, and one service hides no other."""
    ground = Ground()
    assert ground.shown == [("compute", False), ("network", False)]
    ground.open()
    ground.call(service="network")
    assert ground.shown[2:] == [("compute", True)]
    ground.now += circuit.FIRST_OPEN_S
    ground.call()
    assert ground.shown[3:] == [("compute", False)]


def test_while_the_probe_is_under_way_all_others_are_refused() -> None:
    ground = Ground()
    ground.open()
    ground.now += circuit.FIRST_OPEN_S
    with (
        ground.held.call("compute", "list servers"),
        pytest.raises(errors.Unavailable, match="not called") as refused,
    ):
        ground.call()
    assert refused.value.retry_after_s == circuit.PROBE_WAIT_S
    ground.call()


def test_a_service_that_answered_in_another_way_is_called_again() -> None:
    ground = Ground()
    ground.open()
    ground.held.close("compute")
    ground.call()
    assert ground.shown[2:] == [("compute", True), ("compute", False)]


def test_a_probe_that_ends_in_a_bug_is_a_failed_one() -> None:
    """Nothing that a call may raise leaves the circuit waiting for it for ever."""
    ground = Ground()
    ground.open()
    ground.now += circuit.FIRST_OPEN_S
    with pytest.raises(ZeroDivisionError):
        ground.call(ZeroDivisionError())
    with pytest.raises(errors.Unavailable, match="not called"):
        ground.call()
    ground.now += 2 * circuit.FIRST_OPEN_S
    ground.call()
