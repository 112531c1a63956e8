"""Ansible's modules judge a simulated engine: each call twice, the second unchanged."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from tests.harness import testing
from tests.harness.zvirt import ansible
from tests.harness.zvirt.ansible import Outcome, Task
from tests.lib.lab.zvirt.served import Served, serving

CLOUD_INIT = {"host_name": "web-2", "custom_script": "runcmd: [echo '<&>']\n"}
_WEB_1 = {"name": "web-1", "template": "debian-12", "cluster": "Default"}
_NIC = {"name": "nic1", "profile_name": "ovirtmgmt"}
FIRST = (
    Task(
        "from template",
        "ovirt_vm",
        {**_WEB_1, "memory": "2GiB", "cpu_cores": 2, "nics": [_NIC]},
    ),
    Task(
        "created",
        "ovirt_disk",
        {"name": "data-1", "size": "10GiB", "format": "raw", "storage_domain": "nfs-1"},
    ),
    Task("created", "ovirt_tag", {"name": "tag-1", "vms": ["web-1"]}),
    Task(
        "read with follow",
        "ovirt_vm_info",
        {
            "pattern": "name=web-*",
            "follow": ["nics", "disk_attachments.disk"],
            "case_sensitive": True,
            "all_content": True,
        },
    ),
)
_SECOND = {"name": "web-2", "template": "debian-12", "cluster": "Default"}
_DISK = {"name": "data-1", "vm_name": "web-2", "interface": "virtio_scsi"}
_GROUP = {"name": "group-1", "cluster": "Default"}
_PROFILE = {"name": "profile-1", "network": "ovirtmgmt", "data_center": "Default"}
ABSENT_PROFILE = "Vnic profile 'profile-1' in network 'ovirtmgmt' was not found."
"""The module fails for a profile that is absent, where others report no change."""
NO_SIZE = "Disk [provisioned_size] required for add"
"""The module creates a disk that it should detach and that is not attached."""
REST = (
    Task(
        "cloned with cloud-init",
        "ovirt_vm",
        {**_SECOND, "state": "stopped", "clone": True, "cloud_init": CLOUD_INIT},
    ),
    Task("start", "ovirt_vm", {"name": "web-2", "state": "running"}),
    Task("attach", "ovirt_disk", {**_DISK, "state": "attached"}),
    Task("resize", "ovirt_disk", {**_DISK, "size": "12GiB", "state": "attached"}),
    Task("detach", "ovirt_disk", {**_DISK, "state": "detached"}, fails=NO_SIZE),
    Task("stop", "ovirt_vm", {"name": "web-2", "state": "stopped", "force": True}),
    Task(
        "created",
        "ovirt_nic",
        {"vm": "web-2", "name": "nic2", "profile": "ovirtmgmt", "network": "ovirtmgmt"},
    ),
    Task("absent", "ovirt_nic", {"vm": "web-2", "name": "nic2", "state": "absent"}),
    Task("created", "ovirt_vnic_profile", _PROFILE),
    Task(
        "attached",
        "ovirt_tag",
        {"name": "tag-1", "vms": ["web-2"], "state": "attached"},
    ),
    Task(
        "detached",
        "ovirt_tag",
        {"name": "tag-1", "vms": ["web-2"], "state": "detached"},
    ),
    Task(
        "created",
        "ovirt_affinity_group",
        {
            **_GROUP,
            "vm_rule": "negative",
            "vm_enforcing": True,
            "vms": ["web-1", "web-2"],
        },
    ),
    Task("started", "ovirt_job", {"description": "job 1"}),
    Task("finished", "ovirt_job", {"description": "job 1", "state": "finished"}),
    Task(
        "created",
        "ovirt_event",
        {"description": "e", "origin": "mooring", "custom_id": 7, "state": "present"},
        calls=1,
    ),
    Task("read", "ovirt_disk_info", {"pattern": "name=data-*"}),
    Task("read", "ovirt_nic_info", {"vm": "web-1"}),
    Task("read", "ovirt_vnic_profile_info", {"name": "profile-1"}),
    Task("read", "ovirt_tag_info", {"vm": "web-1"}),
    Task("read", "ovirt_event_info", {"search": "severity=normal", "max": 5}),
    Task("read", "ovirt_template_info", {"pattern": "name=debian-12"}),
    Task("read", "ovirt_storage_domain_info", {"pattern": "name=nfs-1"}),
    Task("read", "ovirt_cluster_info", {"pattern": "name=Default"}),
    Task("read", "ovirt_datacenter_info", {"pattern": "name=Default"}),
    Task("read", "ovirt_host_info", {"pattern": "status=up"}),
    Task("read", "ovirt_network_info", {"pattern": "name=ovirtmgmt"}),
    Task("read", "ovirt_user_info", {"pattern": "usrname=admin*"}),
    Task("read", "ovirt_api_info", {}),
    Task("absent", "ovirt_affinity_group", {**_GROUP, "state": "absent"}),
    Task("absent", "ovirt_tag", {"name": "tag-1", "state": "absent"}),
    Task(
        "absent",
        "ovirt_vnic_profile",
        {**_PROFILE, "state": "absent"},
        fails=ABSENT_PROFILE,
    ),
    Task("absent", "ovirt_disk", {"name": "data-1", "state": "absent"}),
    Task("absent", "ovirt_vm", {"name": "web-2", "state": "absent"}),
    Task("absent", "ovirt_vm", {"name": "web-1", "state": "absent"}),
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("engine"), "delay * 0.05") as served:
        yield served


@pytest.fixture(scope="module")
def outcomes(engine: Served, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    judges = ansible.install(places.default().cache)
    login = {
        "url": engine.url,
        "username": "admin@internal",
        "password": engine.password,
        "ca_file": engine.ca_file,
    }
    tasks = testing.by_tier(FIRST, (*FIRST, *REST))
    folder = tmp_path_factory.mktemp("ansible")
    rows = ansible.run(judges, folder, login, tasks)
    print(ansible.table(rows))
    return rows


def test_every_call_succeeds(outcomes: list[Outcome]) -> None:
    for row in outcomes:
        is_expected = bool(row.task.fails) and row.number > 1
        assert row.failed == is_expected, (row.task, row.number, row.message)
        assert row.task.fails in row.message or not is_expected


def test_the_first_call_changes_and_the_second_does_not(
    outcomes: list[Outcome],
) -> None:
    for row in outcomes:
        is_change = row.number == 1 and not row.task.module.endswith("_info")
        assert row.changed == is_change, (row.task, row.number)


def test_what_was_read_is_what_was_created(outcomes: list[Outcome]) -> None:
    (row,) = (
        row
        for row in outcomes
        if row.task.module == "ovirt_vm_info" and row.number == 2
    )
    (vm,) = row.facts["ovirt_vms"]
    assert vm["name"] == "web-1"
    assert vm["memory"] == 2 << 30
    assert [nic["name"] for nic in vm["nics"]] == ["nic1"]
    assert vm["disk_attachments"][0]["disk"]["status"] == "ok"


def test_requests_are_counted_by_kind(engine: Served, outcomes: list[Outcome]) -> None:
    counts = engine.service.counts
    for kind, count in sorted(counts.items()):
        print(f"{count:5} {kind}")
    assert counts["POST vms"] == testing.by_tier(1, 2)
    # One more is refused: see NO_SIZE.
    assert counts["POST disks"] == testing.by_tier(1, 2)
