"""The circuits of one client, one per service, shared by its threads."""

import contextlib
import threading
from collections.abc import Callable, Iterator

import structlog

from lib.cloud import errors
from lib.cloud.support import circuit

CircuitObserver = Callable[[str, bool], None]
"""Takes a service and whether its circuit is open."""


def ignore(service: str, is_open: bool) -> None:
    """Do nothing: no observer is registered."""
    del service, is_open


class Circuits:
    """Refuses calls to services that fail repeatedly. Safe for many threads."""

    def __init__(
        self,
        services: tuple[str, ...],
        on_circuit: CircuitObserver,
        clock: Callable[[], float],
    ) -> None:
        """clock: monotonic seconds."""
        self._lock = threading.Lock()
        self._circuits = dict.fromkeys(services, circuit.Circuit())
        self._on_circuit = on_circuit
        self._clock = clock
        self._log = structlog.stdlib.get_logger()
        for service in services:
            on_circuit(service, False)

    @contextlib.contextmanager
    def call(self, service: str, operation: str) -> Iterator[None]:
        """Surround one call; its error shows the state of the service.

        Raises:
            Unavailable: the circuit is open; retry_after_s says for how long.
        """
        self._admit(service, operation)
        try:
            yield
        except errors.Unavailable as error:
            self._fail(service, error.retry_after_s)
            raise
        except errors.CloudError:
            self._put(service, circuit.succeeded)  # a refusal answers
            raise
        except BaseException:
            self._fail(service, None)  # a probe must not stay open
            raise
        self._put(service, circuit.succeeded)

    def close(self, service: str) -> None:
        """Admit calls again: the service has answered in another way."""
        self._put(service, circuit.succeeded)

    def _admit(self, service: str, operation: str) -> None:
        with self._lock:
            now, wait_s = circuit.admitted(self._circuits[service], self._clock())
            self._circuits[service] = now
        if wait_s > 0:
            why = "does not answer" if now.is_open else "asked for a pause"
            raise errors.Unavailable(
                f"not called: the {service} service {why}",
                operation=operation,
                retry_after_s=wait_s,
                was_rejected=True,
            )

    def _fail(self, service: str, retry_after_s: float | None) -> None:
        at = self._clock()
        if retry_after_s is not None:
            pause_s = retry_after_s
            self._put(service, lambda now: circuit.paused(now, at, pause_s))
        else:
            self._put(service, lambda now: circuit.failed(now, at))

    def _put(
        self, service: str, change: Callable[[circuit.Circuit], circuit.Circuit]
    ) -> None:
        with self._lock:
            old = self._circuits[service]
            now = self._circuits[service] = change(old)
            if old.is_open == now.is_open:
                return
            self._on_circuit(service, now.is_open)
        if now.is_open:
            self._log.warning("circuit opened", service=service, open_s=now.open_s)
        else:
            self._log.info("circuit closed", service=service)
