"""csi-controller on a simulated parent: requests, the reference's state, failures."""

import json
import pathlib
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, MACHINES
from lib.lab.dvp.project import Project
from tests.harness.dvp import csi_dvp
from tests.harness.dvp.dvp_parent import (
    CLUSTER,
    CLUSTER_LABEL,
    HOSTNAME_LABEL,
    MANAGED,
    OTHER_CLUSTER,
    DvpParent,
)

GIB = csi_dvp.GIB
NODE, OTHER = "node-1", "node-2"
RSS_MIB = 120
LISTS_PER_HOUR = 60
"""Source: kubernetes-csi/external-attacher --reconcile-sync: one minute."""
IDLE_S = 5.0
CACHED_S = 12.0
"""Longer than the API server accepts a revoked token.

Source: Kubernetes kubeapiserver authenticator config (TokenSuccessCacheTTL)."""
_WATCHED = ("list", "watch")


@pytest.fixture(scope="module")
def driver(
    parent: DvpParent, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[csi_dvp.CsiDvp]:
    parent.machines(project, [NODE, OTHER])
    state = tmp_path_factory.mktemp("csi")
    with csi_dvp.running(state, parent.where, project) as started:
        yield started


def new_name() -> str:
    return f"pvc-{uuid.uuid4()}"


class Requests:
    """Counts what the project's user asks, by the parent's audit log."""

    def __init__(self, parent: DvpParent, project: Project) -> None:
        self._parent, self._project = parent, project
        self._before = len(self._read())

    def _read(self) -> list[str]:
        return [
            f"{row.verb} {row.resource}"
            for row in self._parent.settled(self._project)
            if row.verb not in _WATCHED
        ]

    def since(self) -> list[str]:
        rows = self._read()
        sent, self._before = rows[self._before :], len(rows)
        return sent


def refused(call: Callable[[], object]) -> tuple[str, str]:
    """Return code and message of a call that is refused."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    return error.code().name, error.details()


def test_each_rpc_is_one_request(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """By the parent's audit log; lists and watches are those of the start."""
    name, requests = new_name(), Requests(parent, project)
    disks, attachments = DISKS.plural, ATTACHMENTS.plural
    context: dict[str, str] = {}
    rows: list[tuple[str, Callable[[], object], list[str]]] = [
        ("CreateVolume", lambda: driver.create(name), [f"create {disks}"]),
        (
            "ControllerPublishVolume",
            lambda: context.update(driver.publish(name, NODE)),
            [f"create {attachments}"],
        ),
        ("ListVolumes", driver.published, []),
        (
            "ControllerExpandVolume",
            lambda: driver.expand(name, 2 * GIB),
            [f"patch {disks}"],
        ),
        (
            "ControllerUnpublishVolume",
            lambda: driver.unpublish(name, NODE),
            [f"delete {attachments}"],
        ),
        (
            "DeleteVolume",
            lambda: driver.delete(name),
            [f"delete {disks}", f"get {disks}"],
        ),
    ]
    uid = ""
    for title, call, expected in rows:
        call()
        sent = requests.since()
        print(f"{title:26} {', '.join(sent) or 'none'}")
        assert sent == expected
        stored = parent.objects(project).get(DISKS, name)
        uid = stored["metadata"]["uid"] if stored else uid
    assert context == {csi_dvp.UID_KEY: uid}
    assert parent.objects(project).get(DISKS, name) is None


def test_the_state_of_the_reference_is_adopted(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """By labels of the attachment alone; the disk stays as it is, and attached."""
    name, objects = new_name(), parent.objects(project)
    own = {**MANAGED, CLUSTER_LABEL: CLUSTER}
    claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": str(GIB)}
    labels = {**own, HOSTNAME_LABEL: "", "virtualDiskName": name}
    objects.make(DISKS, name, {"labels": labels}, spec={"persistentVolumeClaim": claim})
    parent.wait_phase(DISKS, project, name, "Ready")
    title = f"vmbda-{name}-{NODE}"
    held = {"virtualMachineDiskName": name, "virtualMachineName": NODE}
    reference = {"kind": "VirtualDisk", "name": name}
    objects.make(
        ATTACHMENTS,
        title,
        {"labels": {**own, HOSTNAME_LABEL: NODE, **held}},
        spec={"virtualMachineName": NODE, "blockDeviceRef": reference},
    )
    before = parent.wait_phase(ATTACHMENTS, project, title, "Attached")
    parent.wait(
        "the disk lists its VM",
        lambda: (objects.get(DISKS, name) or {})["status"].get(
            "attachedToVirtualMachines"
        ),
    )
    disk = objects.get(DISKS, name)
    assert disk is not None
    requests = Requests(parent, project)
    context = driver.publish(name, NODE)
    assert context == {csi_dvp.UID_KEY: disk["metadata"]["uid"]}
    assert requests.since() == [f"patch {ATTACHMENTS.plural}"]
    after = objects.get(ATTACHMENTS, title)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["phase"] == "Attached"
    added = after["metadata"]["labels"].keys() - before["metadata"]["labels"].keys()
    print("labels added:", *sorted(added))
    assert added == {"mooring.io/owner-uid", "mooring.io/published-by"}
    assert objects.get(DISKS, name) == disk
    driver.unpublish(name, NODE)
    driver.delete(name)


def test_objects_of_another_child_stay_as_they_are(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """A disk of the same name, and a VM with the same host name."""
    name, objects = new_name(), parent.objects(project)
    vm = parent.machine(project, NODE, name="other-child-vm", cluster=OTHER_CLUSTER)
    labels = {**MANAGED, CLUSTER_LABEL: OTHER_CLUSTER, "virtualDiskName": name}
    claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": str(GIB)}
    objects.make(DISKS, name, {"labels": labels}, spec={"persistentVolumeClaim": claim})
    disk = parent.wait_phase(DISKS, project, name, "Ready")
    code, message = refused(lambda: driver.create(name))
    assert code == "ALREADY_EXISTS"
    assert OTHER_CLUSTER in message
    assert refused(lambda: driver.publish(name, NODE))[0] == "NOT_FOUND"
    assert refused(lambda: driver.delete(name))[0] == "FAILED_PRECONDITION"
    own = new_name()
    driver.create(own)
    driver.publish(own, NODE)
    attachments = [item["spec"] for item in objects.all(ATTACHMENTS)]
    assert {spec["virtualMachineName"] for spec in attachments} == {NODE}
    assert vm not in {spec["virtualMachineName"] for spec in attachments}
    driver.unpublish(own, NODE)
    title = f"vmbda-{own}-{NODE}"
    parent.wait("it is detached", lambda: objects.get(ATTACHMENTS, title) is None)
    with parent.holding(f"* {title}"):
        reference = {"kind": "VirtualDisk", "name": own}
        taken = {"virtualMachineName": NODE, "blockDeviceRef": reference}
        others_meta = {"labels": {CLUSTER_LABEL: OTHER_CLUSTER}}
        objects.make(ATTACHMENTS, title, others_meta, spec=taken)
        assert refused(lambda: driver.publish(own, NODE))[0] == "ALREADY_EXISTS"
        objects.delete(ATTACHMENTS, title)
    driver.delete(own)
    now = objects.get(DISKS, name)
    assert json.dumps(now, sort_keys=True) == json.dumps(disk, sort_keys=True)


def test_what_the_parent_refuses_is_named(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """Code and message of each case; nothing remains of a failed creation."""
    objects, name = parent.objects(project), new_name()
    driver.create(name)
    table: list[tuple[str, Callable[[], object], str, str]] = [
        (
            "no such storage class",
            lambda: driver.create(new_name(), dvpStorageClass="gold"),
            "INVALID_ARGUMENT",
            "gold",
        ),
        (
            "no storage class",
            lambda: driver.create(new_name(), other="x"),
            "INVALID_ARGUMENT",
            "dvpStorageClass",
        ),
        (
            "no such VM",
            lambda: driver.publish(name, "nowhere"),
            "NOT_FOUND",
            'instance "nowhere" not found',
        ),
    ]
    for title, call, expected, text in table:
        code, message = refused(call)
        print(f"{title:24} {code:18} {message}")
        assert code == expected
        assert text in message
    driver.publish(name, NODE)
    code, message = refused(lambda: driver.publish(name, OTHER))
    assert (code, NODE in message) == ("FAILED_PRECONDITION", True)
    driver.unpublish(name, NODE)
    line = f"attachment-attached vmbda-{name}-* Conflict no place"
    with parent.failing(line):
        code, message = refused(lambda: driver.publish(name, NODE))
    assert (code, "no place" in message) == ("INTERNAL", True)
    requests = Requests(parent, project)
    driver.publish(name, NODE)
    plural = ATTACHMENTS.plural
    assert requests.since() == [f"delete {plural}", f"create {plural}"]
    driver.unpublish(name, NODE)
    driver.delete(name)
    metas = [disk["metadata"] for disk in objects.all(DISKS)]
    assert [
        meta["name"]
        for meta in metas
        if meta["name"].startswith("pvc")
        and meta["labels"][CLUSTER_LABEL] == CLUSTER
        and not meta.get("deletionTimestamp")
    ] == []


def test_a_parent_that_is_down_is_unavailable(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """And the next call after it completes what the last one began; tokens rotate."""
    name = new_name()
    driver.create(name)
    with parent.stopped():
        parent.wait(
            "the watches are interrupted",
            lambda: refused(lambda: driver.publish(name, NODE))[0] == "UNAVAILABLE",
        )

    def publishes() -> bool:
        try:
            driver.publish(name, NODE)
        except grpc.RpcError as error:
            print("not yet:", error)
            return False
        return True

    parent.wait("the volume is published", publishes)
    driver.kill()
    driver.start()
    driver.unpublish(name, NODE)
    driver.delete(name)


def test_a_rotated_token_needs_no_restart(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """The old token is invalid; a volume's life goes on with that of the file."""
    name, process = new_name(), driver.process()
    driver.create(name)
    parent.revoke(project)
    time.sleep(CACHED_S)
    code, message = refused(lambda: driver.publish(name, NODE))
    print(f"token revoked: {code} {message}")
    assert code in ("UNAUTHENTICATED", "UNAVAILABLE")
    parent.rotate(project)

    def publishes() -> bool:
        try:
            return bool(driver.publish(name, NODE))
        except grpc.RpcError:
            return False

    began = time.monotonic()
    parent.wait("the new token is used", publishes)
    print(f"new token used after {time.monotonic() - began:.1f} s")
    driver.unpublish(name, NODE)
    driver.delete(name)
    assert process.is_running(), "restarted"


def test_an_idle_hour_is_no_request(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """With as many lists as external-attacher and external-resizer need in an hour."""
    name, requests = new_name(), Requests(parent, project)
    driver.create(name)
    driver.publish(name, NODE)
    requests.since()
    before = len(parent.settled(project))
    for _ in range(LISTS_PER_HOUR):
        assert driver.published()[name] == [NODE]
    time.sleep(IDLE_S)
    sent = len(parent.settled(project)) - before
    print(f"{LISTS_PER_HOUR} lists and {IDLE_S:.0f} s: {sent} requests")
    assert sent == 0
    driver.unpublish(name, NODE)
    driver.delete(name)


def test_two_children_in_one_project(
    driver: csi_dvp.CsiDvp,
    parent: DvpParent,
    project: Project,
    tmp_path: pathlib.Path,
) -> None:
    """Equal names of Nodes; each attaches to its own VM, and leaves the other's."""
    objects, own, foreign = parent.objects(project), new_name(), new_name()
    vm = parent.machine(project, OTHER, name="second-child-vm", cluster=OTHER_CLUSTER)
    parent.wait_phase(MACHINES, project, vm, "Running")
    driver.create(own)
    driver.publish(own, OTHER)
    before = whole(parent, project, own)
    with csi_dvp.running(tmp_path, parent.where, project, OTHER_CLUSTER) as second:
        assert refused(lambda: second.create(own))[0] == "ALREADY_EXISTS"
        second.create(foreign)
        second.publish(foreign, OTHER)
        title = f"vmbda-{foreign}-{OTHER}"
        attached = objects.get(ATTACHMENTS, title) or {}
        assert attached["spec"]["virtualMachineName"] == vm
        assert own not in second.published()
        assert foreign not in driver.published()
        assert refused(lambda: second.delete(own))[0] == "FAILED_PRECONDITION"
        assert whole(parent, project, own) == before
        both = whole(parent, project, foreign)
        driver.unpublish(own, OTHER)
        driver.delete(own)
        assert whole(parent, project, foreign) == both
        second.unpublish(foreign, OTHER)
        second.delete(foreign)
    assert objects.get(DISKS, foreign) is None


def whole(parent: DvpParent, project: Project, volume: str) -> str:
    """Return the JSON of the disk and the attachment of a volume, settled."""
    parent.settled(project)
    objects, title = parent.objects(project), f"vmbda-{volume}-{OTHER}"

    def read() -> list[Any]:
        return [objects.get(DISKS, volume), objects.get(ATTACHMENTS, title)]

    def listed() -> bool:
        disk = objects.get(DISKS, volume) or {}
        return bool(disk.get("status", {}).get("attachedToVirtualMachines"))

    parent.wait("the disk lists its VM", listed)
    return json.dumps(read(), sort_keys=True)


def test_verbs_and_memory(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """The verbs used are those of docs/dvp.md; all lists and watches are of a start."""
    used: dict[str, set[str]] = {}
    for row in parent.requests(project):
        used.setdefault(row.resource, set()).add(row.verb)
    for resource, verbs in sorted(used.items()):
        print(f"{resource:40} {' '.join(sorted(verbs))}")
    watched = {"list", "watch"}
    assert used == {
        "virtualmachines": watched,
        DISKS.plural: watched | {"get", "create", "patch", "delete"},
        ATTACHMENTS.plural: watched | {"get", "create", "patch", "delete"},
    }
    rss = driver.process().memory_info().rss / 2**20
    print(f"RSS of csi-controller: {rss:.0f} MiB")
    assert rss < RSS_MIB
