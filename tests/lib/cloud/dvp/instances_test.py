import time
from collections.abc import Iterator

import pytest

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import cloud, translate
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    Instance,
    InstanceRef,
    NotManaged,
    Observation,
    Phase,
    Seen,
    Unknown,
)
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.lab.run import waiting
from lib.process import decoding
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES
Document = dict[str, object]


def document(
    name: str,
    hostname: str = "",
    cluster: str = UUID,
    spec: Document | None = None,
    **status: object,
) -> Document:
    labels = {ownership.CLUSTER: cluster, ownership.HOSTNAME: hostname or name}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": parent_api.vm_spec() if spec is None else spec,
        "status": {"phase": "Running", "ipAddress": "10.0.0.1", **status},
    }


def vm(**fields: object) -> kinds.VirtualMachine:
    import json

    body = json.dumps({**document("vm-1"), **fields})
    return decoding.decode(body, kinds.VirtualMachine)


@pytest.fixture()
def fake() -> parent_api.ParentApi:
    return parent_api.ParentApi()


@pytest.fixture()
def access(fake: parent_api.ParentApi) -> Iterator[parent.Parent]:
    opened = parent.Parent(fake, NAMESPACE, UUID)
    yield opened
    opened.close()


def observe(
    instances: cloud.ParentInstances, name: str, provider_id: str = ""
) -> Observation[Instance]:
    ref = InstanceRef(name, provider_id)
    return instances.observe({ref}, time.monotonic())[ref]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Pending", Phase.PENDING),
        ("Starting", Phase.PENDING),
        ("Running", Phase.RUNNING),
        ("Stopping", Phase.RUNNING),
        ("Stopped", Phase.STOPPED),
        ("Terminating", Phase.DELETING),
        ("Migrating", Phase.RUNNING),
        ("Pause", Phase.SUSPENDED),
        ("Degraded", Phase.FAILED),
        ("", Phase.UNKNOWN),
        ("Quantum", Phase.UNKNOWN),
    ],
)
def test_each_phase_has_its_meaning(phase: str, expected: Phase) -> None:
    """Only Stopped is stopped; what is not known is neither stopped nor running."""
    assert translate.phase(vm(status={"phase": phase})) is expected


def test_addresses_are_never_empty() -> None:
    """A VM without an IP address has none at all, not even its hostname."""
    assert translate.addresses(vm()) == (
        Address(AddressType.EXTERNAL_IP, "10.0.0.1"),
        Address(AddressType.INTERNAL_IP, "10.0.0.1"),
        Address(AddressType.HOSTNAME, "vm-1"),
    )
    for status in ({}, {"ipAddress": ""}, {"ipAddress": " "}):
        assert translate.addresses(vm(status=status)) == ()


def test_the_zone_is_that_of_the_constraints() -> None:
    """Where a VM runs is not read: a live migration changes nothing."""
    selector = {translate.ZONE: "zone-1", translate.REGION: "region 1"}
    spec = {"virtualMachineClassName": "generic", "nodeSelector": selector}
    before = translate.instance(vm(spec=spec, status={"nodeName": "host-1"}))
    after = translate.instance(vm(spec=spec, status={"nodeName": "host-2"}))
    assert before == after
    assert (after.zone, after.region) == ("zone-1", "region-1")
    assert after.instance_type == "generic"
    free = translate.instance(vm(spec={}))
    assert (free.zone, free.region, free.instance_type) == ("", "", "")


def test_an_object_that_lacks_fields_is_an_instance() -> None:
    """Neither spec nor status nor labels: it is there, and nothing is known of it."""
    bare = decoding.decode(b'{"metadata": {"name": "x"}}', kinds.VirtualMachine)
    instance = translate.instance(bare)
    assert (instance.id, instance.name, instance.phase) == ("x", "", Phase.UNKNOWN)


def test_an_unknown_phase_is_logged_once(
    fake: parent_api.ParentApi,
    access: parent.Parent,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which VM has it, and which phases are known."""
    fake.put_impossible(VMS.resource, document("a", phase="Quantum"))
    instances = cloud.ParentInstances(access)
    for _ in range(2):
        observed = observe(instances, "a")
        assert isinstance(observed, Seen)
        assert observed.value.phase is Phase.UNKNOWN
        fake.put(VMS.resource, document("b"))
        waiting.until("b", lambda: len(access.items(VMS)) == 2)
    assert capsys.readouterr().out.count("Quantum") == 1


def test_equal_names_of_two_clusters_are_two(
    fake: parent_api.ParentApi, access: parent.Parent
) -> None:
    """The VM of another cluster in the project is neither found nor a duplicate."""
    fake.put(VMS.resource, document("a-1", "a"))
    fake.put(VMS.resource, document("b-1", "a", cluster="uuid-b"))
    observed = observe(cloud.ParentInstances(access), "a")
    assert isinstance(observed, Seen)
    assert observed.value.id == "a-1"


def test_two_vms_with_one_hostname_are_ambiguous(
    fake: parent_api.ParentApi, access: parent.Parent
) -> None:
    """The Node keeps waiting, and others are served."""
    for name in ("a-1", "a-2"):
        fake.put(VMS.resource, document(name, "a"))
    fake.put(VMS.resource, document("b"))
    instances = cloud.ParentInstances(access)
    observed = observe(instances, "a")
    assert isinstance(observed, Unknown)
    assert isinstance(observed.error, errors.Ambiguous)
    assert str(observed.error) == "find VM a: 2 VMs have this name"
    assert isinstance(observe(instances, "b"), Seen)


def test_static_nodes_are_of_others(access: parent.Parent) -> None:
    """Nothing is asked of the parent for them."""
    instances = cloud.ParentInstances(access)
    for provider_id in ("static://a/b", "openstack:///x", "dvp://"):
        assert isinstance(observe(instances, "a", provider_id), NotManaged)
    assert not instances.confirm_absent(InstanceRef("a", "static://a/b"))


def test_a_vm_that_lost_its_labels_is_not_absent(
    fake: parent_api.ParentApi, access: parent.Parent
) -> None:
    """It left the watched set, but direct reads find it: no Node may be deleted."""
    instances = cloud.ParentInstances(access)
    fake.put(VMS.resource, document("a-1", "a"))
    assert isinstance(observe(instances, "a", "dvp://a-1"), Seen)
    for cluster, hostname in (("", "a"), (UUID, "elsewhere"), ("uuid-b", "a")):
        fake.put(VMS.resource, document("a-1", hostname, cluster))
        assert not instances.confirm_absent(InstanceRef("a", "dvp://a-1"))
    fake.put(VMS.resource, document("a-1", "a", cluster=""))
    assert not instances.confirm_absent(InstanceRef("a"))
    fake.put(VMS.resource, document("a", "x", cluster=""))
    fake.remove(VMS.resource, "a-1", NAMESPACE)
    assert not instances.confirm_absent(InstanceRef("a"))
    fake.remove(VMS.resource, "a", NAMESPACE)
    assert instances.confirm_absent(InstanceRef("a"))
    assert instances.confirm_absent(InstanceRef("a", "dvp://a-1"))


def test_absence_does_not_count_in_another_place(fake: parent_api.ParentApi) -> None:
    """A kubeconfig that leads to another parent makes every VM "not found"."""
    hosts = ["https://one:6443"]
    access = parent.Parent(fake, NAMESPACE, UUID, host=lambda: hosts[0])
    fake.put(VMS.resource, document("a"))
    instances = cloud.ParentInstances(access)
    assert isinstance(observe(instances, "a", "dvp://a"), Seen)
    fake.remove(VMS.resource, "a", NAMESPACE)
    waiting.until("the deletion", lambda: not access.items(VMS))
    assert observe(instances, "a", "dvp://a") == Absent(by_id=True)
    hosts[0] = "https://two:6443"
    assert isinstance(observe(instances, "a", "dvp://a"), Unknown)
    with pytest.raises(errors.Unavailable, match="https://two:6443"):
        instances.confirm_absent(InstanceRef("a", "dvp://a"))
    access.close()


@pytest.mark.parametrize(
    "refusal",
    [
        kube_errors.Unavailable("no answer in time", operation="x"),
        kube_errors.Forbidden("not allowed", operation="x", status=403),
        kube_errors.Unauthorized("expired", operation="x", status=401),
        kube_errors.NotFound("404 page not found", operation="x", status=404),
    ],
)
def test_a_parent_that_cannot_be_read_proves_nothing(
    fake: parent_api.ParentApi, refusal: kube_errors.KubeError
) -> None:
    """Each instance is unknown, in all three ways to read it."""
    fake.put(VMS.resource, document("a"))
    fake.faults += [calls.Fault(refusal, verb) for verb in ("list", "get")]
    access = parent.Parent(fake, NAMESPACE, UUID)
    instances = cloud.ParentInstances(access)
    ref = InstanceRef("a", "dvp://a")
    assert isinstance(observe(instances, *("a", "dvp://a")), Unknown)
    with pytest.raises(errors.CloudError):
        instances.confirm_absent(ref)
    waiting.until("the next list", lambda: access.store(VMS).synced.is_set())
    waiting.until("the watch", lambda: access.store(VMS).failure is None)
    assert isinstance(instances.look({ref})[ref], Seen)
    access.close()


def test_reads_of_a_thousand_nodes_are_one_list(
    fake: parent_api.ParentApi, access: parent.Parent
) -> None:
    """Any number of refs, any number of times."""
    for n in range(1000):
        fake.put(VMS.resource, document(f"vm-{n}"))
    instances = cloud.ParentInstances(access)
    refs = {InstanceRef(f"vm-{n}") for n in range(1000)}
    for _ in range(10):
        answers = instances.observe(refs, time.monotonic())
        assert all(isinstance(answer, Seen) for answer in answers.values())
    pages = [call for call in fake.calls if call.verb == "list"]
    print(f"{len(pages)} pages, {len(fake.calls)} requests for 10 x 1,000 Nodes")
    assert len(pages) == 2
    assert {call.verb for call in fake.calls} <= {"list", "watch"}


def test_only_what_concerns_a_node_is_reported(
    fake: parent_api.ParentApi, access: parent.Parent
) -> None:
    """Each change of the row, and whom it concerns; one of statistics is silent."""
    reported: list[str] = []
    cloud.VmChanges(access).subscribe(lambda ref: reported.append(ref.node_name))
    access.items(VMS)
    rows: list[tuple[str, Document | None, list[str]]] = [
        ("created", document("a"), ["a"]),
        (
            "statistics",
            document("a", stats={"launchTimeDuration": {"guestOSAgentStarting": "1s"}}),
            [],
        ),
        ("migrated", document("a", nodeName="host-2"), []),
        ("another address", document("a", ipAddress="10.0.0.2"), ["a"]),
        ("stopped", document("a", phase="Stopped", ipAddress="10.0.0.2"), ["a"]),
        ("renamed", document("a", "b"), ["a", "b"]),
        ("of another cluster", document("a", "b", cluster="uuid-b"), ["b"]),
        ("back", document("a", "b"), ["b"]),
        ("deleted", None, ["b"]),
    ]
    for what, change, expected in rows:
        reported.clear()
        if change is None:
            fake.remove(VMS.resource, "a", NAMESPACE)
        else:
            fake.put(VMS.resource, change)
        # The next object is announced after it.
        fake.put(VMS.resource, document("marker", ipAddress=what))
        waiting.until("the marker", lambda: "marker" in reported, poll_s=0.01)
        print(f"{what:20} {sorted(set(reported) - {'marker'})}")
        assert sorted(set(reported) - {"marker"}) == expected, what
