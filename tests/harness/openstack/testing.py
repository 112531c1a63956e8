"""The lab of one test process: a control plane of its own and a real OpenStack.

OpenStack stays up for the next process of the same slot, see `kept.py`. The control
plane does not: its Nodes, Leases and audit log belong to one process.
"""

import concurrent.futures
import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterator

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.kube import control_plane, kube_files
from lib.lab.openstack import accounts, cloud, lab, layout, tenant
from lib.lab.run import processes
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.openstack import kept

_OPENSTACK = {layout.DATABASE, *layout.SERVICES}
MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
"""Creates a project of a given name, with a user and a network of its own."""


@contextlib.contextmanager
def running(lease: leases.Lease) -> Iterator[places.Places]:
    """Build what is missing and start everything; OpenStack may be running already.

    All else in the lab is started for this process, and stopped at the end.
    """
    place, shown = lease.where, testing.shown()
    programs.build(place, [control_plane.GROUP], shown)
    lab.build(place, shown)
    _remove_logs(place)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            started = [
                pool.submit(control_plane.up, place, shown),
                pool.submit(kept.ensure, place, shown),
            ]
            for start in started:
                start.result()
        yield place
    finally:
        _stop_all_but_openstack(place)


def _remove_logs(where: places.Places) -> None:
    """Remove what daemons and the control plane of an earlier process have written."""
    for log in where.log.glob("*.log"):
        if log.stem not in _OPENSTACK:
            log.unlink()


def _stop_all_but_openstack(where: places.Places) -> None:
    control_plane.down(where)
    others = [name for name in processes.names(where) if name not in _OPENSTACK]
    processes.stop(where, others)
    shutil.rmtree(kube_files.room(where), ignore_errors=True)


@contextlib.contextmanager
def projects(where: places.Places, has_router: bool = True) -> Iterator[MakeProject]:
    """Return a factory of projects; they are cleared at the end.

    Each process has projects of its own: what an earlier one left is not seen.
    has_router: their networks lead to the public one; only floating IPs need that.
    """
    with contextlib.ExitStack() as stack:

        def make(name: str) -> tuple[accounts.Account, tenant.Tenant]:
            account = cloud.project(where, f"{name}-{secrets.token_hex(3)}")
            connection = cloud.connect(where, account)
            stack.callback(connection.close)
            project = tenant.Tenant(connection)
            project.ensure_network(has_router)
            stack.callback(project.clear)
            return account, project

        yield make
