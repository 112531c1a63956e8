"""Passes that come with time, not with events."""

import dataclasses
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from lib.reconcile import failure as failures
from lib.reconcile import metrics as reconcile_metrics


class Stop(Protocol):
    """What a periodic pass needs of a threading.Event."""

    def is_set(self) -> bool:
        """Report whether to end."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; report whether to end."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Periodic:
    """Calls a function every interval_s seconds.

    sliding: the next call starts interval_s after the last one ended; otherwise after
    it started, and immediately if it took longer (missed calls are not repeated).
    at_once: the first call comes at the start, not after an interval. failure: explains
    expected errors; their retry_after_s is ignored. clock: monotonic seconds.

    Source: k8s.io/apimachinery util/wait JitterUntil, `sliding`.
    """

    name: str
    interval_s: float
    fn: Callable[[], None]
    metrics: reconcile_metrics.ReconcileMetrics
    _: dataclasses.KW_ONLY
    sliding: bool = True
    at_once: bool = True
    failure: Callable[[Exception], failures.Failure | None] = failures.none_expected
    clock: Callable[[], float] = time.monotonic

    def run(self, stop: Stop) -> None:
        """Go on until `stop` is set; an error is logged, counted, and outlived."""
        if not self.at_once and stop.wait(self.interval_s):
            return
        while not stop.is_set():
            began = self.clock()
            self._call()
            since = self.clock() if self.sliding else began
            if stop.wait(max(0.0, since + self.interval_s - self.clock())):
                return

    def _call(self) -> None:
        began = self.clock()
        result = reconcile_metrics.Result.SUCCESS
        with structlog.contextvars.bound_contextvars(controller=self.name):
            try:
                self.fn()
            except Exception as error:
                result = self._report(error)
        self.metrics.passed(self.name, result, self.clock() - began)

    def _report(self, error: Exception) -> reconcile_metrics.Result:
        failure = self.failure(error)
        log = structlog.stdlib.get_logger(
            controller=self.name, next_try_s=self.interval_s
        )
        if failure is None:
            log.error("unexpected error in periodic reconcile", exc_info=error)
            return reconcile_metrics.Result.UNEXPECTED_ERROR
        log.warning("periodic reconcile failed", error=failure.summary)
        return reconcile_metrics.Result.FAILURE
