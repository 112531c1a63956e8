"""The simulated engine as a program: restarts, faults, and the SDK's own Connection."""

import datetime
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

import ovirtsdk4
import pytest
from ovirtsdk4 import types

from lib.lab import errors
from lib.lab.grounds import servers
from lib.lab.kube import pki
from lib.lab.zvirt import control, server, virtual_servers
from tests.lib.lab.zvirt.served import Served, serving

QUICK = "delay * 0.02"
MACHINE = types.Vm(
    name="web-1",
    cluster=types.Cluster(name="Default"),
    template=types.Template(name="debian-12"),
)


@pytest.fixture()
def served(tmp_path: pathlib.Path) -> Iterator[Served]:
    with serving(tmp_path, QUICK) as engine:
        yield engine


def connect(engine: Served, **changes: object) -> ovirtsdk4.Connection:
    """Return the SDK's own connection; it authenticates at its first call."""
    words = {
        "url": engine.url,
        "username": "admin@internal",
        "password": engine.password,
        "ca_file": engine.ca_file,
        "timeout": 10,
        **changes,
    }
    return ovirtsdk4.Connection(**words)


def test_the_sdk_renews_a_lost_token(served: Served) -> None:
    connection = connect(served)
    vms = connection.system_service().vms_service()
    assert vms.list() == []
    served.ask(do="lose-tokens")
    assert vms.list() == []
    assert served.service.sso.logins == 2
    connection.close()


def test_the_sdk_creates_follows_and_removes(served: Served) -> None:
    connection = connect(served)
    vms = connection.system_service().vms_service()
    served.ask(do="rules", lines=[QUICK, "hold vm-copied"])
    vm = vms.add(MACHINE, clone=True, query={"correlation_id": "vm_create_1"})
    assert vm.status == types.VmStatus.IMAGE_LOCKED
    service = vms.vm_service(vm.id)
    with pytest.raises(ovirtsdk4.Error) as caught:
        service.start()
    assert caught.value.code == 409
    assert "VM is locked" in caught.value.fault.detail
    served.ask(do="rules", lines=[QUICK])
    served.ask(do="advance", seconds=1)
    assert service.get().status == types.VmStatus.DOWN
    (attachment,) = connection.follow_link(service.get().disk_attachments)
    assert attachment.id == connection.follow_link(attachment.disk).id
    assert connection.follow_link(vm.cluster).name == "Default"
    service.start()
    served.ask(do="advance", seconds=1)
    devices = service.reported_devices_service().list()
    assert [device.name for device in devices] == ["lo"]
    service.stop()
    served.ask(do="advance", seconds=1)
    service.remove()
    with pytest.raises(ovirtsdk4.NotFoundError):
        service.get()


def test_futures_of_the_sdk(served: Served) -> None:
    connection = connect(served, connections=4, pipeline=4)
    service = connection.system_service()
    futures = [
        service.vms_service().list(wait=False),
        service.disks_service().list(wait=False),
        service.tags_service().list(wait=False),
    ]
    assert [len(future.wait()) for future in futures] == [0, 2, 1]


def test_errors_of_the_sdk_by_class(served: Served) -> None:
    with pytest.raises(ovirtsdk4.AuthError, match="access_denied"):
        connect(served, password="wrong").test(raise_exception=True)
    other = served.folder / "other.crt"
    now = datetime.datetime.now(datetime.UTC)
    other.write_bytes(pki.authority("other", now).certificate)
    with pytest.raises(ovirtsdk4.Error, match=r"\(60,"):
        connect(served, ca_file=str(other)).test(raise_exception=True)
    tags = connect(served).system_service().tags_service()
    tags.add(types.Tag(name="t"))
    with pytest.raises(ovirtsdk4.Error) as caught:
        tags.add(types.Tag(name="t"))
    assert caught.value.code == 409


def test_all_that_go_clients_require_is_served(served: Served) -> None:
    """Source: go-ovirt-client, its functions convertSDK*."""
    connection = connect(served)
    system = connection.system_service()
    vm = system.vms_service().add(MACHINE, clone=False)
    system.vms_service().vm_service(vm.id).nics_service().list()
    served.ask(do="advance", seconds=1)
    nics = system.vms_service().vm_service(vm.id).nics_service()
    profile = system.vnic_profiles_service().list()[0]
    nics.add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id=profile.id)))
    system.tags_service().add(types.Tag(name="t"))
    for machine in system.vms_service().list():
        topology = machine.cpu.topology
        required = (
            *(machine.id, machine.name, machine.cluster.id, machine.status),
            *(machine.template.id, machine.memory, machine.type, machine.os.type),
            *(topology.cores, topology.threads, topology.sockets),
        )
        assert None not in required
        inner = system.vms_service().vm_service(machine.id)
        for row in inner.disk_attachments_service().list():
            names = (row.id, row.vm.id, row.disk.id, row.interface)
            assert None not in (*names, row.bootable, row.active)
        for nic in inner.nics_service().list():
            names = (nic.id, nic.name, nic.vm.id, nic.vnic_profile.id)
            assert None not in (*names, nic.mac.address)
    for template in system.templates_service().list():
        assert None not in (template.status, template.cpu.topology.cores)
    for tag in system.tags_service().list():
        assert None not in (tag.id, tag.name)


def test_a_restarted_engine_has_the_same_objects(tmp_path: pathlib.Path) -> None:
    with serving(tmp_path, "delay * 0.3") as engine:
        system = connect(engine).system_service()
        vm = system.vms_service().add(MACHINE, clone=True)
        before = system.vms_service().vm_service(vm.id).get()
    with serving(tmp_path, "delay * 0.3") as engine:
        system = connect(engine).system_service()
        service = system.vms_service().vm_service(vm.id)
        after = service.get()
        assert (after.name, after.memory) == (before.name, before.memory)
        assert len(service.disk_attachments_service().list()) == 1
        # What was under way ends as planned.
        deadline = time.monotonic() + 10
        while service.get().status != types.VmStatus.DOWN:
            assert time.monotonic() < deadline
            time.sleep(0.05)


FAULTS = {
    "refuse POST api/tags 409 1 Tag is locked": (409, "Tag is locked", False),
    "refuse POST api/tags 500 1 Internal": (500, "Internal", False),
    "html POST api/tags 502 1": (None, "text/html", False),
    "html POST api/tags 503 1": (None, "text/html", False),
    "no-response POST api/tags 1": (None, "", True),
}


@pytest.mark.parametrize("line", FAULTS)
def test_a_fault_befalls_one_request(line: str, served: Served) -> None:
    code, text, is_effective = FAULTS[line]
    tags = connect(served).system_service().tags_service()
    served.ask(do="rule", line=line)
    with pytest.raises(ovirtsdk4.Error) as caught:
        tags.add(types.Tag(name="t"))
    assert caught.value.code == code
    assert text in str(caught.value)
    names = [tag.name for tag in tags.list()]
    assert ("t" in names) == is_effective
    if not is_effective:
        tags.add(types.Tag(name="t"))


def test_a_response_without_effect(served: Served) -> None:
    tags = connect(served).system_service().tags_service()
    served.ask(do="rule", line="no-effect POST api/tags 1")
    assert tags.add(types.Tag(name="t")).name == "t"
    assert [tag.name for tag in tags.list()] == ["root"]


def test_another_administrator_changes_objects(served: Served) -> None:
    vms = connect(served).system_service().vms_service()
    vm = vms.add(MACHINE, clone=True)
    served.ask(do="advance", seconds=1)
    body = "<vm><name>renamed</name></vm>"
    served.ask(do="request", method="PUT", path=f"vms/{vm.id}", body=body)
    assert vms.vm_service(vm.id).get().name == "renamed"
    served.ask(do="set", kind="storage_domain", name="nfs-1", status="maintenance")
    with pytest.raises(ovirtsdk4.Error, match="status is maintenance"):
        vms.add(types.Vm(name="b", cluster=vm.cluster, template=MACHINE.template))


def test_requests_are_counted_and_recorded_without_secrets(served: Served) -> None:
    vms = connect(served).system_service().vms_service()
    vms.add(MACHINE, clone=True, query={"correlation_id": "vm_create_1"})
    counts = served.ask(do="counts")
    assert isinstance(counts, dict)
    assert counts["POST vms"] == 1
    assert counts["POST sso/oauth/token"] == 1
    text = (served.folder / server.REQUESTS).read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    (row,) = (row for row in rows if row["kind"] == "POST vms")
    assert row["user"] == "admin@internal"
    assert row["correlation_id"] == "vm_create_1"
    assert served.password not in text
    tokens = list(served.service.sso._sessions)
    assert all(token not in text for token in tokens)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "wheels",
        "hold",
        "hold nothing",
        "hold vm-name-taken",
        "delay vm-copied soon",
        "delay vm-copied -1",
        "refuse POST api/tags 200 1",
        "refuse POST api/tags 409 often",
        "html POST api/tags",
    ],
)
def test_an_invalid_rule_is_refused(line: str, served: Served) -> None:
    with pytest.raises(errors.LabError, match="invalid rule"):
        served.ask(do="rule", line=line)


def test_without_an_engine_the_socket_says_so(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.LabError, match="does not answer"):
        control.ask(tmp_path / server.CONTROL, do="counts")


def test_a_held_transition_does_not_happen(served: Served) -> None:
    served.ask(do="rules", lines=[QUICK, "hold vm-copied web-*"])
    vms = connect(served).system_service().vms_service()
    vm = vms.add(MACHINE, clone=True)
    served.ask(do="advance", seconds=1)
    assert vms.vm_service(vm.id).get().status == types.VmStatus.IMAGE_LOCKED
    served.ask(do="rules", lines=[QUICK])
    assert vms.vm_service(vm.id).get().status == types.VmStatus.DOWN


def test_a_process_with_5000_vms(tmp_path: pathlib.Path) -> None:
    code = (
        "import pathlib, sys, time\n"
        "from lib.lab.zvirt import server\n"
        "began = time.monotonic()\n"
        "served, _ = server.open_service(pathlib.Path(sys.argv[1]))\n"
        "print(time.monotonic() - began)\n"
        "from tests.lib.lab.zvirt import many\n"
        "many.fill(served.engine, 5000)\n"
        "lines = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "(peak,) = (line for line in lines if line.startswith('VmHWM:'))\n"
        "print(int(peak.split()[1]) / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"PYTHONPATH": ":".join(part for part in sys.path if part)},
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    seconds, megabytes = map(float, done.stdout.split())
    print(f"open in {seconds:.2f} s, {megabytes:.0f} MB with 5,000 VMs")
    assert megabytes <= 150


def test_servers_of_a_lab_are_vms(served: Served) -> None:
    cloud = virtual_servers.EngineServers(served.folder / server.CONTROL)
    booted = cloud.boot("node-1", servers.Kind())
    served.ask(do="advance", seconds=20)
    (row,) = cloud.items()
    assert (row.id, row.name, row.status) == (booted.id, "node-1", servers.ACTIVE)
    assert row.addresses
    cloud.stop(row.id)
    served.ask(do="advance", seconds=20)
    assert cloud.items()[0].status == servers.SHUTOFF
    cloud.start(row.id)
    cloud.delete(row.id)
    cloud.delete(row.id)
    assert cloud.items() == ()
