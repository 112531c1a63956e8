"""What Ansible's modules report of a simulated engine that refuses them."""

import datetime
import pathlib

from lib.lab import places
from lib.lab.kube import pki
from tests.harness.zvirt import ansible
from tests.harness.zvirt.ansible import Task
from tests.lib.lab.zvirt.served import serving


def test_refusals(tmp_path: pathlib.Path) -> None:
    with serving(tmp_path / "engine", "delay * 0.05") as engine:
        login = {
            "url": engine.url,
            "username": "admin@internal",
            "password": engine.password,
            "ca_file": engine.ca_file,
        }
        other = tmp_path / "other.crt"
        now = datetime.datetime.now(datetime.UTC)
        other.write_bytes(pki.authority("other", now).certificate)
        vm = {"name": "web-1", "cluster": "Default", "template": "debian-12"}
        tasks = [
            Task(
                "wrong password",
                "ovirt_auth",
                {**login, "password": "a wrong password"},
                calls=1,
                fails="access_denied",
            ),
            Task(
                "wrong CA",
                "ovirt_auth",
                {**login, "ca_file": str(other)},
                calls=1,
                fails="SSL certificate",
            ),
            Task(
                "absent template",
                "ovirt_vm",
                {**vm, "template": "absent"},
                calls=1,
                fails="absent",
            ),
            Task(
                "absent cluster",
                "ovirt_vm",
                {**vm, "cluster": "absent"},
                calls=1,
                fails="object has no attribute 'data_center'",
            ),
            Task(
                "absent domain",
                "ovirt_disk",
                {"name": "d", "size": "1GiB", "storage_domain": "absent"},
                calls=1,
                fails="Entity not found",
            ),
            Task(
                "too much memory",
                "ovirt_vm",
                {**vm, "memory": "1GiB", "memory_guaranteed": "2GiB"},
                calls=1,
                fails="Physical Memory Guaranteed cannot exceed Memory Size",
            ),
            Task(
                "absent VM",
                "ovirt_disk",
                {"name": "d", "size": "1GiB", "vm_name": "absent"},
                calls=1,
                fails="absent",
            ),
        ]
        # Each ovirt_auth sets the facts of those after it only when it succeeds.
        rows = ansible.run(
            ansible.install(places.default().cache), tmp_path / "run", login, tasks
        )
    print(ansible.table(rows))
    for row in rows:
        assert row.failed, row.task
        assert row.task.fails in row.message, row.message
