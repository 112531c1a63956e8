"""Writes to the cloud end with the Lease."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from lib.ccm import permitted
from lib.cloud import errors, steps
from lib.cloud.fake import load_balancers as fake_cloud
from lib.kube import errors as kube_errors
from lib.kube import guarded

STEP = steps.Step(
    steps.Verb.DELETE,
    ("load balancer x",),
    "the Service is gone",
    ("delete", "x", None),
)


class Recorder(fake_cloud.FakeLoadBalancers):
    """Fake load balancers that record the time which each write was given."""

    def __init__(self) -> None:
        super().__init__(time.monotonic)
        self.within: list[float] = []

    def apply(
        self, step: steps.Step, within_s: float = float("inf")
    ) -> steps.StepResult:
        self.within.append(within_s)
        return super().apply(step, within_s)


def lease(left_s: float) -> guarded.Permit:
    @contextlib.contextmanager
    def acting(operation: str) -> Iterator[float]:
        if left_s <= 0:
            raise kube_errors.NotLeader("not the leader", operation=operation)
        yield left_s

    return acting


def test_a_write_may_take_as_long_as_the_lease_lasts() -> None:
    """The seconds that are left reach the provider as the bound of the request."""
    cloud = Recorder()
    for left_s in (7.0, 0.2):
        with pytest.raises(errors.NotFound):
            permitted.Permitted(cloud, lease(left_s)).apply(STEP)
    with pytest.raises(errors.NotFound):
        permitted.Permitted(cloud, lease(7.0)).apply(STEP, 3.0)
    assert cloud.within == [7.0, 0.2, 3.0]


def test_without_the_lease_no_write_is_sent() -> None:
    cloud = Recorder()
    with pytest.raises(kube_errors.NotLeader):
        permitted.Permitted(cloud, lease(0.0)).apply(STEP)
    assert cloud.within == []
