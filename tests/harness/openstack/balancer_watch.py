"""Reads the states of load balancers without load on an API."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping

import openstack.connection

from lib.lab.openstack import layout
from tests.harness.openstack import balancers, database_session

_PENDING = "PENDING_"


class States:
    """Provisioning statuses of one project's load balancers, from Octavia's database.

    Safe to use from several threads.
    """

    def __init__(self, session: database_session.Session, project_id: str) -> None:
        if not project_id.isalnum():
            raise ValueError("the id of a project is wanted")
        self._session = session
        self._lock = threading.Lock()
        self._query = (
            "SELECT id, provisioning_status FROM octavia.load_balancer"  # noqa: S608
            f" WHERE project_id = '{project_id}'"
        )
        self._members = (
            "SELECT COUNT(*) FROM octavia.member"  # noqa: S608
            f" WHERE project_id = '{project_id}'"
        )

    def all(self) -> Mapping[str, str]:
        """Return the status of each load balancer by its id.

        Raises:
            LabError: the database has hung up.
        """
        with self._lock:
            return {row[0]: row[1] for row in self._session.ask(self._query)}

    def members(self) -> int:
        """Return the number of members of all pools.

        Raises:
            LabError: the database has hung up.
        """
        with self._lock:
            return int(self._session.ask(self._members)[0][0])

    def pending(self) -> frozenset[str]:
        """Return the ids of those that Octavia is changing now.

        Raises:
            LabError: the database has hung up.
        """
        return frozenset(id_ for id_, state in self.all().items() if is_pending(state))


def is_pending(state: str) -> bool:
    """Report whether Octavia is changing a load balancer with this status."""
    return state.startswith(_PENDING)


@contextlib.contextmanager
def states(
    home: layout.Layout, connection: openstack.connection.Connection
) -> Iterator[States]:
    """Open the states of the connection's project for as long as the block lasts."""
    with database_session.Session(home) as session:
        yield States(session, str(connection.current_project_id))


class Watch:
    """Reads Octavia's own database.

    turned: id of the load balancer, and when that was seen, by the monotonic clock.
    longest_s: that one of them was seen not to be ACTIVE.
    """

    def __init__(self, home: layout.Layout, pause_s: float = 0.05) -> None:
        self.turned: list[tuple[str, float]] = []
        self.longest_s = 0.0
        self._home = home
        self._pause_s = pause_s
        self._stop = threading.Event()

    @contextlib.contextmanager
    def opened(self) -> Iterator["Watch"]:
        """Watch while the block runs."""
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
        began: dict[str, float] = {}
        while not self._stop.wait(self._pause_s):
            now = {row[0]: row[1] for row in session.ask(query)}
            at = time.monotonic()
            for id_, state in now.items():
                was = before.get(id_, balancers.ACTIVE)
                if state != balancers.ACTIVE:
                    began.setdefault(id_, at)
                elif was != balancers.ACTIVE:
                    self.turned.append((id_, at))
                    self.longest_s = max(self.longest_s, at - began.pop(id_))
            before = now
