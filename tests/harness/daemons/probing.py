"""Asks a daemon whether it is well, as a kubelet does."""

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator, Sequence

FAILURES = 3
"""In a row. Source: Kubernetes core/v1 Probe, failureThreshold."""
PERIOD_S = 1.0


class Prober:
    """Each answer has to be 200; see `unwell`.

    A probe that gets no answer on a busy machine is counted apart: a kubelet restarts a
    container after several in a row. probed: how many there were.
    """

    def __init__(
        self,
        ask: Callable[[str], tuple[int, str]],
        paths: Sequence[str] = ("/livez", "/readyz"),
    ) -> None:
        """ask: returns status and body of a path, see `ccm.ask`."""
        self.probed = 0
        self.unwell: list[str] = []
        self.unanswered: list[str] = []
        self._ask = ask
        self._paths = paths
        self._stop = threading.Event()

    def _run(self) -> None:
        in_a_row = 0
        while not self._stop.wait(PERIOD_S):
            for path in self._paths:
                self.probed += 1
                try:
                    code, text = self._ask(path)
                except (OSError, http.client.HTTPException) as error:
                    in_a_row += 1
                    self.unanswered.append(f"{path}: {error}")
                    if in_a_row >= FAILURES:
                        self.unwell.append(f"{path}: {in_a_row} times: {error}")
                    continue
                in_a_row = 0
                if code != http.client.OK:
                    self.unwell.append(f"{path}: {code} {text}")

    @contextlib.contextmanager
    def running(self) -> Iterator["Prober"]:
        """Probe for as long as the block lasts."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join(60)
