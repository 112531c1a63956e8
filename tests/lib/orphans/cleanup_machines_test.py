"""What is left of machines: which rows are orphans, and their deletion."""

import dataclasses
import datetime

import pytest

from lib.cloud import errors, protocol
from lib.cloud.fake import machines as fake_cloud
from lib.cloud.fake.machine_plans import Vm, VmState
from lib.cloud.load_balancers import Cluster
from lib.cloud.machines import Owned, Ref
from lib.kube import errors as kube_errors
from lib.kube import objects, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.orphans import cleanup, decide, deletion_flow, model, observe
from lib.orphans.model import (
    CloudLists,
    ClusterLists,
    FailedList,
    FindingState,
    MachineRecord,
    Other,
)

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
OLD, YOUNG = NOW - datetime.timedelta(hours=1), NOW - datetime.timedelta(minutes=9)
CLUSTER, SPACE, FINALIZER = "cluster-1", "machines", "fakemachine.example.com"
KIND = model.MachineKind(
    resources.Resource("example.com", "v1", "fakemachines", "FakeMachine", True),
    FINALIZER,
)
SETTINGS = model.Settings(
    Cluster(CLUSTER, "kubernetes"),
    "",
    subjects=frozenset({Other.MACHINE}),
    own_id=CLUSTER,
    machine_kind=KIND,
)
FAILED = FailedList("list things: HTTP 503")


def part(
    name: str = "lost",
    uid: str = "uid-lost",
    created: datetime.datetime | None = OLD,
    namespace: str = SPACE,
) -> Owned:
    ref = Ref(CLUSTER, namespace, name, uid)
    return Owned("VM", f"id-{name}", name, uid, created, ref)


def record(
    name: str, uid: str = "", *, is_deleted: bool = False, is_held: bool = True
) -> MachineRecord:
    about = objects.ObjectMeta(
        name=name,
        namespace=SPACE,
        uid=uid or f"uid-{name}",
        deletion_timestamp=NOW if is_deleted else None,
        finalizers=(FINALIZER,) if is_held else ("other",),
    )
    return MachineRecord(about)


ALIVE = ClusterLists(machines=(record("alive"),))
OF_REFERENCE = part("old", "", namespace="")
ROWS: dict[str, tuple[CloudLists, ClusterLists, list[str], str]] = {
    "of no machine object": (
        CloudLists({}, machines=(part(),)),
        ALIVE,
        ["orphan FakeMachine machines/lost does not exist"],
        "",
    ),
    "of a machine object": (CloudLists({}, machines=(part("alive"),)), ALIVE, [], ""),
    "of an object that was recreated, as by a move": (
        CloudLists({}, machines=(part("alive", "uid-before"),)),
        ALIVE,
        [],
        "",
    ),
    "of one in another namespace": (
        CloudLists({}, machines=(part("alive", "uid-x", namespace="other"),)),
        ALIVE,
        ["orphan FakeMachine other/alive does not exist"],
        "",
    ),
    "of the reference, without a UID": (
        CloudLists({}, machines=(OF_REFERENCE,)),
        ALIVE,
        ["orphan FakeMachine old does not exist"],
        "",
    ),
    "of the reference, of a machine object": (
        CloudLists({}, machines=(OF_REFERENCE,)),
        ClusterLists(machines=(record("old"),)),
        [],
        "",
    ),
    "of one that is being deleted": (
        CloudLists({}, machines=(part(),)),
        ClusterLists(machines=(record("lost", is_deleted=True),)),
        [],
        "",
    ),
    "of one that was released, and another finalizer keeps": (
        CloudLists({}, machines=(part(),)),
        ClusterLists(machines=(record("lost", is_deleted=True, is_held=False),)),
        ["orphan FakeMachine machines/lost was released although it is left"],
        "",
    ),
    "no part of a machine, such as a VM of Terraform": (
        CloudLists({}, machines=(dataclasses.replace(part(), ref=None),)),
        ClusterLists(),
        ["not owned it is no part of a machine of Cluster API"],
        "",
    ),
    "younger than ten minutes": (
        CloudLists({}, machines=(part(created=YOUNG),)),
        ALIVE,
        [],
        "",
    ),
    "the cloud could not be listed": (
        CloudLists({}, machines=FAILED),
        ALIVE,
        [],
        FAILED.why,
    ),
    "machine objects could not be listed": (
        CloudLists({}, machines=(part(),)),
        ClusterLists(machines=FAILED),
        [],
        FAILED.why,
    ),
    "no machine objects, although tags point to some": (
        CloudLists({}, machines=(part(),)),
        ClusterLists(),
        [],
        "the list of FakeMachine objects is empty, although ownership tags point to"
        " some",
    ),
    "nothing owned in a cluster without Cluster API": (
        CloudLists({}, machines=()),
        ClusterLists(machines=FAILED),
        [],
        "",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_is_left_of_machines(row: str) -> None:
    cloud, cluster, expected, unknown = ROWS[row]
    survey = decide.decide(cloud, cluster, SETTINGS, NOW)
    shown = [f"{each.state} {each.reason}" for each in survey.findings]
    print(row, shown, survey.unknown)
    assert shown == expected
    assert "".join(each.why for each in survey.unknown) == unknown


def test_of_a_cluster_that_is_gone_everything_is_left() -> None:
    gone = dataclasses.replace(SETTINGS, is_gone=True)
    lists = CloudLists({}, machines=(part("alive"),))
    (finding,) = decide.decide(lists, ClusterLists(), gone, NOW).findings
    assert finding.reason == f"cluster {CLUSTER} does not exist any more"


class Scene:
    """A fake cloud with VMs, and the machine objects of a cluster."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cloud = fake_cloud.FakeMachines(lambda: self.now_s)
        self.api = fake_api.FakeApi()
        for name in ("alive", "lost", "left"):
            self.vm(name)
        self.vm("of-another", "cluster-2")
        self.machine("alive")

    def vm(self, name: str, cluster: str = CLUSTER) -> None:
        owner = (cluster, f"uid-{name}")
        self.cloud.vms[name] = Vm(name, name, owner, state=VmState.DOWN)

    def machine(self, name: str) -> None:
        about: dict[str, object] = {"name": name, "namespace": SPACE}
        about |= {"uid": f"uid-{name}", "finalizers": [FINALIZER]}
        self.api.put(KIND.resource, {"metadata": about})

    def survey(self) -> tuple[CloudLists, model.Survey]:
        opened = protocol.Cloud("fake", machines=self.cloud)
        lists = observe.cloud_lists(opened, SETTINGS)
        cluster = observe.cluster_lists(self.api, SETTINGS)
        return lists, decide.decide(lists, cluster, SETTINGS, NOW)

    def delete(
        self, lists: CloudLists, survey: model.Survey
    ) -> list[cleanup.CleanupResult]:
        results: list[cleanup.CleanupResult] = []
        work = cleanup.Cleanup(
            protocol.Cloud("fake", machines=self.cloud),
            self.api,
            SETTINGS,
            lists,
            deletion_flow.PollClocks(lambda: self.now_s, self._sleep),
        )
        work.run(survey.of(FindingState.ORPHAN), results.append)
        return results

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_only_orphans_are_deleted() -> None:
    scene = Scene()
    lists, survey = scene.survey()
    assert [finding.name for finding in survey.findings] == ["left", "lost"]
    results = scene.delete(lists, survey)
    assert [result.why for result in results] == ["", ""]
    assert sorted(scene.cloud.vms) == ["alive", "of-another"]


def test_a_machine_that_came_back_in_the_meantime_keeps_its_vm() -> None:
    scene = Scene()
    lists, survey = scene.survey()
    scene.machine("lost")
    results = scene.delete(lists, survey)
    whys = {result.finding.name: result.why for result in results}
    assert whys == {"left": "", "lost": "an object of the cluster uses it now"}
    assert sorted(scene.cloud.vms) == ["alive", "lost", "of-another"]


def test_a_rejected_deletion_is_reported_and_others_go_on() -> None:
    scene = Scene()
    lists, survey = scene.survey()
    refusal = errors.Forbidden("no right", operation="delete VM", resource="left")

    def refuse(operation: str) -> None:
        if "delete" in operation and "left" in operation:
            raise refusal

    scene.cloud.before_call = refuse
    whys = {r.finding.name: r.why for r in scene.delete(lists, survey)}
    print(whys)
    assert whys["lost"] == ""
    assert "no right" in whys["left"]
    assert sorted(scene.cloud.vms) == ["alive", "left", "of-another"]


def test_without_a_kind_of_machine_objects_none_is_listed() -> None:
    scene = Scene()
    refusal = kube_errors.Unavailable("x", operation="GET", status=503)
    scene.api.faults.append(calls.Fault(refusal, "list", KIND.resource.plural))
    settings = dataclasses.replace(SETTINGS, machine_kind=None)
    assert observe.cluster_lists(scene.api, settings) == ClusterLists()
