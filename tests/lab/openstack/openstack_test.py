"""The lab's OpenStack does what the tests of others rely on."""

import threading
from collections.abc import Iterator
from typing import Any

import openstack
import openstack.connection
import pytest

from lib.lab import errors, places
from lib.lab.grounds import servers
from lib.lab.openstack import accounts, cloud, lab, layout, tenant
from lib.lab.run import processes, progress, waiting
from lib.lab.slots import leases

LATE_S = 10.0
"""Longer than Nova's imports take."""


@pytest.fixture(scope="module")
def user(where: places.Places) -> Iterator[tenant.Tenant]:
    """Yield a user in a project of its own, with a network."""
    account = cloud.project(where, "smoke")
    connection = cloud.connect(where, account)
    mine = tenant.Tenant(connection)
    mine.ensure_network()
    yield mine
    mine.clear()
    connection.close()


def test_every_service_answers_and_a_second_start_changes_nothing(
    where: places.Places,
) -> None:
    before = lab.status(where)
    assert all(row.is_answering for row in before)

    lab.up(where, progress.Silent())

    after = lab.status(where)
    assert [row.pid for row in after] == [row.pid for row in before]


def test_the_written_clouds_file_opens_the_cloud(
    where: places.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = accounts.clouds_file(where)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))

    for name in ("mooring-lab", "mooring-lab-admin"):
        connection = openstack.connect(cloud=name)
        assert connection.authorize()
        connection.close()


def test_a_server_runs_stops_starts_changes_its_name_and_goes(
    user: tenant.Tenant,
) -> None:
    server = user.boot_all(["life"])["life"]
    assert server.zone in {"az1", "az2", "az3"}
    assert server.flavor == "m1.tiny"
    assert user.boot("life", servers.Kind()).id == server.id

    user.stop(server.id)
    user.wait([server.id], servers.SHUTOFF)
    user.start(server.id)
    user.wait([server.id], servers.ACTIVE)
    user.rename(server.id, "afterlife")
    assert {item.name for item in user.items()} == {"afterlife"}
    user.delete(server.id)

    waiting.until("the cloud follows", lambda: not user.items())
    user.delete(server.id)


def test_a_floating_ip_shows_among_the_servers_addresses(user: tenant.Tenant) -> None:
    server = user.boot_all(["outside"])["outside"]

    address = user.add_floating_ip(server.id)
    waiting.until(
        "the cloud follows",
        lambda: any(address in item.addresses for item in user.items()),
    )
    user.remove_floating_ips(server.id)

    waiting.until(
        "the cloud follows",
        lambda: all(address not in item.addresses for item in user.items()),
    )
    user.delete(server.id)


def test_servers_of_one_project_are_not_seen_by_another(
    where: places.Places, user: tenant.Tenant
) -> None:
    server = user.boot_all(["hidden"])["hidden"]
    other = cloud.connect(where)

    assert tenant.Tenant(other).items() == ()
    with pytest.raises(errors.LabError, match="the cloud refused"):
        tenant.Tenant(other).stop(server.id)

    other.close()
    user.delete(server.id)


def test_a_volume_is_attached_and_detached(user: tenant.Tenant) -> None:
    server = user.boot_all(["store"])["store"]
    blocks, compute = user.connection.block_storage, user.connection.compute
    volume = blocks.create_volume(name="data", size=1)

    def reaches(status: str) -> None:
        waiting.until(
            "the cloud follows", lambda: blocks.get_volume(volume.id).status == status
        )

    reaches("available")
    compute.create_volume_attachment(server.id, volume_id=volume.id)
    reaches("in-use")
    compute.delete_volume_attachment(server.id, volume.id)
    reaches("available")
    blocks.delete_volume(volume.id)
    user.delete(server.id)


def test_a_load_balancer_becomes_active_and_takes_a_floating_ip(
    user: tenant.Tenant,
) -> None:
    balancers, network = user.connection.load_balancer, user.connection.network
    subnet = network.find_subnet("lab-subnet", ignore_missing=False)
    balancer = balancers.create_load_balancer(name="front", vip_subnet_id=subnet.id)
    waiting.until(
        "the cloud follows",
        lambda: balancers.get_load_balancer(balancer.id).provisioning_status
        == "ACTIVE",
    )
    public = network.find_network("public", ignore_missing=False)
    vip = network.create_ip(floating_network_id=public.id, port_id=balancer.vip_port_id)

    assert vip.fixed_ip_address == balancer.vip_address

    network.delete_ip(vip)
    balancers.delete_load_balancer(balancer.id, cascade=True)
    waiting.until(
        "the cloud follows", lambda: balancers.find_load_balancer(balancer.id) is None
    )


def test_services_and_servers_survive_a_restart(
    where: places.Places, user: tenant.Tenant
) -> None:
    server = user.boot_all(["lasting"])["lasting"]
    leases.mark_damaged(where, "its services were started again")

    lab.down(where)
    assert not any(row.pid for row in lab.status(where))
    lab.up(where, progress.Silent(), services=layout.NODE_SERVICES)

    running = {row.name for row in lab.status(where) if row.is_answering}
    assert running == {layout.DATABASE, *layout.NODE_SERVICES}
    user.stop(server.id)
    user.wait([server.id], servers.SHUTOFF)
    user.delete(server.id)
    lab.up(where, progress.Silent())


def test_nova_waits_for_the_services_that_it_asks_while_it_starts(
    where: places.Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get the processor later than nova, as may happen on a busy machine."""
    leases.mark_damaged(where, "its services were started again")
    start = processes.start

    def late(*arguments: Any, **more: Any) -> None:
        start(*arguments, **more)
        if arguments[1] in (layout.KEYSTONE, layout.PLACEMENT):
            program = processes.find(where, arguments[1])
            assert program is not None
            program.suspend()
            threading.Timer(LATE_S, program.resume).start()

    lab.down(where)
    monkeypatch.setattr(processes, "start", late)
    lab.up(where, progress.Silent())

    assert all(row.is_answering for row in lab.status(where))
