"""Sees when load balancers turn ACTIVE, without slowing anybody's API down."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping

from lib.lab.openstack import balancers, database_session, layout


class Watch:
    """Looks into Octavia's own database.

    turned: id of the load balancer, and when that was seen, by the monotonic clock.
    """

    def __init__(self, home: layout.Layout, pause_s: float = 0.05) -> None:
        self.turned: list[tuple[str, float]] = []
        self._home = home
        self._pause_s = pause_s
        self._stop = threading.Event()

    @contextlib.contextmanager
    def opened(self) -> Iterator["Watch"]:
        """Look for as long as the block lasts."""
        with database_session.Session(self._home) as session:
            thread = threading.Thread(target=self._run, args=(session,))
            thread.start()
            try:
                yield self
            finally:
                self._stop.set()
                thread.join()

    def _run(self, session: database_session.Session) -> None:
        query = "SELECT id, provisioning_status FROM octavia.load_balancer"
        before: Mapping[str, str] = {}
        while not self._stop.wait(self._pause_s):
            now = {row[0]: row[1] for row in session.ask(query)}
            at = time.monotonic()
            for id_, state in now.items():
                was = before.get(id_, balancers.ACTIVE)
                if state == balancers.ACTIVE != was:
                    self.turned.append((id_, at))
            before = now
