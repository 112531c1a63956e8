"""OpenStack stays up from one test process to the next, or is made again."""

import contextlib
import io
import os
import re
import signal
from collections.abc import Callable

import pytest

from lib.lab import places
from lib.lab.openstack import accounts, cloud, lab, layout, tenant
from lib.lab.run import processes, progress
from lib.lab.slots import leases
from tests.harness.openstack import database_session, kept


def ensured(where: places.Places) -> str:
    """Have the lab run as the next test process does; return what that shows."""
    out = io.StringIO()
    kept.ensure(where, progress.Lines(out))
    print(out.getvalue())
    return out.getvalue()


def pids(where: places.Places) -> dict[str, int | None]:
    return {row.name: row.pid for row in lab.status(where)}


def test_a_lab_that_is_up_and_whole_is_used_again(where: places.Places) -> None:
    before = pids(where)

    assert "Use the OpenStack that is up" in ensured(where)

    assert pids(where) == before


def killed(where: places.Places) -> None:
    nova = processes.find(where, layout.NOVA)
    assert nova is not None
    nova.kill()
    nova.wait(10)


def frozen(where: places.Places) -> None:
    keystone = processes.find(where, layout.KEYSTONE)
    assert keystone is not None
    for process in (keystone, *keystone.children(recursive=True)):
        os.kill(process.pid, signal.SIGSTOP)


def without_database(where: places.Places) -> None:
    processes.stop(where, [layout.DATABASE], patience_s=0)


def marked(where: places.Places) -> None:
    leases.mark_damaged(where, "it lacks a thing")


DAMAGES = (
    (killed, "Reset OpenStack: nova has ended"),
    (frozen, "Reset OpenStack: keystone does not answer"),
    (without_database, "Reset OpenStack: mariadb has ended"),
    (marked, "Reset OpenStack: it is damaged: it lacks a thing"),
)


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES)
def test_a_lab_that_is_not_whole_is_made_again(
    where: places.Places, damage: Callable[[places.Places], None], sentence: str
) -> None:
    """One sentence says why; what tests had made is gone, and all services answer."""
    cloud.project(where, "left-behind")
    damage(where)

    assert sentence in ensured(where)

    assert all(row.is_answering for row in lab.status(where))
    with contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin:
        assert cloud.identity_of(admin).find_project("left-behind") is None
    (where.state / "damaged").unlink(missing_ok=True)


def columns_with(session: database_session.Session, text: str) -> list[str]:
    """Return each column of the cloud's databases that holds a text somewhere."""
    columns = session.ask(
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"
        " WHERE data_type IN ('char', 'varchar', 'text', 'mediumtext', 'longtext')"
        " AND table_schema NOT IN ('information_schema', 'mysql', 'sys')"
    )
    return [
        f"{schema}.{table}.{column}"
        for schema, table, column in columns
        if session.ask(
            f"SELECT 1 FROM `{schema}`.`{table}`"  # noqa: S608 - names of columns
            f" WHERE `{column}` LIKE '%{text}%' LIMIT 1"
        )
    ]


def test_one_snapshot_fits_every_block_of_ports(
    where: places.Places, lease: leases.Lease
) -> None:
    """A second lab beside the first: no address of the first is left in it."""
    other = lease.apart("other", 300)
    out = io.StringIO()
    try:
        lab.up(other, progress.Lines(out), services=layout.NODE_SERVICES)
        assert "Unpack a seeded OpenStack" in out.getvalue()
        assert "for the first time" not in out.getvalue()
        account = cloud.project(other, "next-door")
        with contextlib.closing(cloud.connect(other, accounts.ADMIN)) as admin:
            urls = [endpoint.url for endpoint in cloud.identity_of(admin).endpoints()]
        with contextlib.closing(cloud.connect(other, account)) as connection:
            mine = tenant.Tenant(connection)
            mine.ensure_network()
            mine.boot_all(["neighbour"])
            mine.clear()
        with database_session.Session(layout.of(other)) as session:
            stale = columns_with(session, f"127.0.0.1:{where.port_base // 100}")
            moved = columns_with(session, f"127.0.0.1:{other.port_base // 100}")
    finally:
        lab.down(other, wipe=True)
    ports = {int(port) for url in urls for port in re.findall(r":(\d+)", url)}
    assert ports <= set(other.ports().values())
    assert layout.ports(other)[layout.NOVA] in ports
    assert stale == []
    # The check finds what it looks for.
    assert {"keystone.endpoint.url", "nova_api.cell_mappings.database_connection"} <= {
        *moved
    }
