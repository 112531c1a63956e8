"""Instances of an engine: phases, doubts about absence, requests counted."""

import time
from collections.abc import Mapping

import pytest
from ovirtsdk4 import types

from lib.cloud import errors, provider_id
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceRef,
    Observation,
    Phase,
    Seen,
    Unknown,
)
from lib.cloud.zvirt import client, home
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import cloud, translate
from lib.lab.zvirt import seed, service
from tests.harness.zvirt.vms_of_nodes import OTHER, Vms
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.many import fill
from tests.lib.lab.zvirt.stage import ABSENT, Stage

GONE = InstanceRef("gone", provider_id.zvirt(ABSENT))


class Scene:
    """One engine with its instances."""

    def __init__(self, rules: cloud.InstanceRules | None = None) -> None:
        self.stage = Stage()
        self.vms = Vms(self.stage.service)
        self.now_s = 0.0
        self.open(rules)

    def open(self, rules: cloud.InstanceRules | None = None) -> None:
        """Begin a new process."""
        access = client.EngineClient(
            lambda: SETTINGS,
            Simulated(self.stage),
            clock=self.clock,
            wall_clock=lambda: 1_700_000_000.0,
        )
        place = home.EngineHome(access, clock=self.clock)
        self.instances = cloud.EngineInstances(access, place, rules, self.clock)

    def clock(self) -> float:
        return self.now_s

    def rules(self, *lines: str) -> None:
        self.stage.engine.settings.replace(lines)

    def look(self, *refs: InstanceRef) -> Mapping[InstanceRef, Observation[Instance]]:
        self.now_s += 1.0
        return self.instances.observe(refs, self.now_s)

    def see(self, ref: InstanceRef) -> Instance:
        observed = self.look(ref)[ref]
        assert isinstance(observed, Seen), observed
        return observed.value

    def requests(self) -> int:
        """Return the requests since the last call, without authentication."""
        counts = self.stage.service.counts
        number = sum(count for kind, count in counts.items() if "sso/" not in kind)
        counts.clear()
        return number


@pytest.fixture()
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("status", translate.PHASES)
def test_each_status_has_a_phase(status: str, scene: Scene) -> None:
    """Only down is a shutdown."""
    vm = scene.vms.boot("web-1")
    scene.stage.set("vm", "web-1", status=status)
    ref = InstanceRef("web-1", provider_id.zvirt(vm))
    looked = scene.instances.look({ref})[ref]
    phase = scene.see(ref).phase
    assert isinstance(looked, Seen)
    assert looked.value.phase is phase is translate.PHASES[status]
    assert (phase is Phase.STOPPED) == (status == "down")


@pytest.mark.parametrize("status", ["", "quantum", "DOWN"])
def test_a_status_that_no_table_lists_is_unknown(status: str) -> None:
    assert translate.phase(Item(types.Vm(), status)) is Phase.UNKNOWN


def test_the_table_has_all_statuses_of_the_api() -> None:
    assert sorted(translate.PHASES) == sorted(status.value for status in types.VmStatus)


def test_a_vm_without_guest_agent_names_itself(scene: Scene) -> None:
    scene.rules("without-agent web-*")
    vm = scene.vms.boot("web-1")
    ref = InstanceRef("web-1", provider_id.zvirt(vm))
    instance = scene.see(ref)
    assert (instance.addresses, instance.addresses_known) == ((), False)
    assert "guest agent of VM web-1" in instance.no_addresses_reason


def test_equal_names_in_two_data_centers(scene: Scene) -> None:
    """Neither is found by name, but each by its ID, or by name in its data center."""
    first, second = scene.vms.boot("web-1"), scene.vms.create("web-1")
    ref = InstanceRef("web-1")
    observed = scene.look(ref)[ref]
    assert isinstance(observed, Unknown)
    assert isinstance(observed.error, errors.Ambiguous)
    for vm in (first, second):
        assert scene.see(InstanceRef("web-1", provider_id.zvirt(vm))).id == vm
    cluster = scene.stage.engine.records.get("cluster", scene.vms.other)
    assert cluster is not None
    places = {
        seed.DATA_CENTER: first,
        OTHER: second,
        cluster.entity.data_center.id: second,
    }
    for name, vm in places.items():
        scene.open(cloud.InstanceRules(data_center=name))
        assert scene.see(ref).id == vm
        assert not scene.instances.confirm_absent(ref)
    scene.open(cloud.InstanceRules(data_center="none"))
    assert scene.look(ref)[ref] == Absent(by_id=False)
    assert scene.instances.confirm_absent(ref)


@pytest.mark.parametrize(
    "name", ['a" or name=*', "a;b", "a'b", "*", "%", "web-*", "", "web-1 or name=web-2"]
)
def test_a_name_is_no_search(name: str, scene: Scene) -> None:
    scene.vms.boot("web-1")
    ref = InstanceRef(name)
    assert scene.look(ref)[ref] == Absent(by_id=False)


@pytest.mark.parametrize("id_", ["x", 'x" or name=*', "../clusters", "WEB-1", "a b"])
def test_an_id_that_is_none_deletes_nothing(id_: str, scene: Scene) -> None:
    """Its Node stays, and the others are served."""
    vm = scene.vms.boot("web-1")
    sound = InstanceRef("web-1", provider_id.zvirt(vm))
    bad = InstanceRef("bad", provider_id.zvirt(id_))
    observed = scene.look(sound, bad)
    assert isinstance(observed[sound], Seen)
    assert not isinstance(observed[bad], Seen)
    looked = scene.instances.look({sound, bad, GONE})
    assert isinstance(looked[sound], Seen)
    assert not isinstance(looked[bad], Seen)
    with pytest.raises(errors.InvalidRequest):
        scene.instances.confirm_absent(bad)


DOUBTS: Mapping[str, str] = {
    "a gateway's 404": "html GET api/vms/* 404 9",
    "a gateway's 503": "html GET api/vms/* 503 9",
    "a fault with 404": "refuse GET api/vms/* 404 9 Entity not found",
    "an error of the engine": "refuse GET api/vms/* 500 9 Internal Engine Error",
    "no permit": "refuse GET api/vms/* 403 9 User is not authorized",
    "the cluster is hidden, too": f"hide {seed.CLUSTER}",
    "the API is gone": "html GET api 503 9",
    "another product": "version 4.0",
}


@pytest.mark.parametrize("case", DOUBTS)
def test_an_absence_in_doubt_is_none(case: str, scene: Scene) -> None:
    """A Node is deleted after two absences; each of these is an error."""
    vm = scene.vms.boot("web-1")
    scene.see(InstanceRef("web-1", provider_id.zvirt(vm)))
    assert scene.instances.confirm_absent(GONE)
    scene.rules(DOUBTS[case])
    with pytest.raises(errors.CloudError) as caught:
        scene.instances.confirm_absent(GONE)
    print(f"{case:30} {caught.value}")


def test_a_revoked_permission_makes_no_vm_absent(scene: Scene) -> None:
    """Objects disappear from lists and are 404; their cluster as well."""
    vm = scene.vms.boot("web-1")
    ref = InstanceRef("web-1", provider_id.zvirt(vm))
    scene.see(ref)
    scene.rules("hide *")
    assert scene.look(ref)[ref] == Absent(by_id=True)
    for named in (ref, InstanceRef("web-1")):
        with pytest.raises(errors.Forbidden, match="does not show clusters/"):
            scene.instances.confirm_absent(named)
    scene.rules()
    scene.see(ref)
    assert not scene.instances.confirm_absent(ref)


def test_another_engine_at_the_url(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its VMs are others; the Nodes of this cluster are not theirs."""
    vm = scene.vms.boot("web-1")
    ref = InstanceRef("web-1", provider_id.zvirt(vm))
    scene.see(ref)
    monkeypatch.setattr(service, "INSTANCE", "another")
    scene.vms.delete(vm)
    with pytest.raises(errors.Unavailable, match="engine 'another', data center ''"):
        scene.instances.confirm_absent(ref)


def test_an_unavailable_engine_makes_all_unknown(scene: Scene) -> None:
    vm = scene.vms.boot("web-1")
    refs = [InstanceRef("web-1", provider_id.zvirt(vm)), InstanceRef("web-1"), GONE]
    scene.rules("html GET api/vms* 503 -")
    for observed in (scene.look(*refs), scene.instances.look(set(refs))):
        assert all(isinstance(each, Unknown) for each in observed.values())


def refs_of(count: int) -> list[InstanceRef]:
    return [InstanceRef(f"node-{number:05}") for number in range(count)]


@pytest.fixture(scope="module")
def crowd() -> Scene:
    """An engine with 6,000 VMs, of which 1,000 are of this cluster."""
    scene = Scene()
    fill(scene.stage.engine, 6000)
    return scene


@pytest.fixture(scope="module")
def thousand() -> Scene:
    scene = Scene()
    fill(scene.stage.engine, 1000)
    return scene


def test_requests_for_a_thousand_nodes(thousand: Scene) -> None:
    """Prints the counts: initialised, reconciled, after a restart, 200 not Ready."""
    thousand.open(cloud.InstanceRules(topology=True))
    thousand.requests()
    observed = thousand.look(*refs_of(1000))
    instances = [each.value for each in observed.values() if isinstance(each, Seen)]
    initial = thousand.requests()
    assert len(instances) == 1000
    assert all(instance.addresses and instance.zone for instance in instances)
    refs = [InstanceRef(instance.name, instance.provider_id) for instance in instances]
    assert all(isinstance(each, Seen) for each in thousand.look(*refs).values())
    again = thousand.requests()
    assert len(thousand.instances.look(set(refs[:200]))) == 200
    unready = thousand.requests()
    thousand.open(cloud.InstanceRules(topology=True))
    thousand.look(*refs)
    restart = thousand.requests()
    print(
        f"initial {initial}, again {again}, restart {restart}, 200 NotReady {unready}"
    )
    assert (initial, restart) <= (10, 10)
    assert again <= 6
    assert unready <= 3


def test_requests_among_five_thousand_further_vms(crowd: Scene) -> None:
    """A few are searched for; a list of all would be 31 pages."""
    crowd.requests()
    observed = crowd.look(*refs_of(1000))
    initial = crowd.requests()
    refs = [
        InstanceRef(each.value.name, each.value.provider_id)
        for each in observed.values()
        if isinstance(each, Seen)
    ]
    assert len(refs) == 1000
    began = time.process_time()
    assert all(isinstance(each, Seen) for each in crowd.look(*refs).values())
    again = crowd.requests()
    print(f"initial {initial}, again {again}, {time.process_time() - began:.1f} s")
    assert initial <= 30
    assert again <= 30
    assert isinstance(crowd.look(refs[0])[refs[0]], Seen)
    assert crowd.requests() == 1
