"""The fake cloud and the real one answer alike: one suite for both."""

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from lib.cloud import errors, protocol
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    Foreign,
    Instance,
    InstanceId,
    InstanceRef,
    Observation,
    Phase,
    Seen,
    Unknown,
)
from lib.cloud.openstack import cloud as openstack_cloud
from lib.cloud.openstack import config as openstack_config
from lib.lab import places, servers
from lib.lab.openstack import accounts, tenant

NOBODY = "openstack:///00000000-0000-0000-0000-000000000000"

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


class Ground(Protocol):
    """A cloud, and hands to change it; each change has happened when it returns."""

    @property
    def instances(self) -> protocol.Instances: ...

    def boot(self, name: str) -> str:
        """Make a running instance; give its id."""
        ...

    def stop(self, instance_id: str) -> None: ...

    def rename(self, instance_id: str, name: str) -> None: ...

    def delete(self, instance_id: str) -> None: ...


class Fake:
    def __init__(self) -> None:
        self.instances = fake_instances.FakeInstances()
        self._made = 0

    def boot(self, name: str) -> str:
        self._made += 1
        instance_id = InstanceId(f"id-{self._made}")
        self.instances.put(
            Instance(
                instance_id,
                name,
                Phase.RUNNING,
                fake_instances.provider_id(instance_id),
                (Address(AddressType.INTERNAL_IP, f"10.0.0.{self._made}"),),
                "m1.tiny",
                "az1",
                "RegionOne",
            )
        )
        return instance_id

    def _change(self, instance_id: str, **changes: object) -> None:
        old = self.instances.instances[InstanceId(instance_id)]
        self.instances.put(dataclasses.replace(old, **changes))  # type: ignore[arg-type]

    def stop(self, instance_id: str) -> None:
        self._change(instance_id, phase=Phase.STOPPED)

    def rename(self, instance_id: str, name: str) -> None:
        self._change(instance_id, name=name)

    def delete(self, instance_id: str) -> None:
        self.instances.remove(InstanceId(instance_id))


class Real:
    def __init__(self, cloud_conf: str, mine: tenant.Tenant) -> None:
        read = openstack_config.read(cloud_conf, os.environ)
        api = openstack_cloud.open_client(read)
        guard = openstack_cloud.guard_of(api, read)
        opened = openstack_cloud.of_client(api, read, guard)
        assert opened.instances is not None
        self.instances = opened.instances
        self._mine = mine

    def boot(self, name: str) -> str:
        made = self._mine.boot_another(name)
        self._mine.wait({made.id}, servers.ACTIVE)
        return made.id

    def stop(self, instance_id: str) -> None:
        self._mine.stop(instance_id)
        self._mine.wait({instance_id}, servers.SHUTOFF)

    def rename(self, instance_id: str, name: str) -> None:
        self._mine.rename(instance_id, name)

    def delete(self, instance_id: str) -> None:
        self._mine.delete(instance_id)
        end = time.monotonic() + 60
        while instance_id in {one.id for one in self._mine.items()}:
            assert time.monotonic() < end
            time.sleep(0.3)


@pytest.fixture(scope="module", params=["fake", "openstack"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "fake":
        yield Fake()
        return
    where: places.Places = request.getfixturevalue("where")
    make: MakeProject = request.getfixturevalue("project")
    account, mine = make("contract")
    yield Real(accounts.cloud_conf(where, account), mine)


def look(ground: Ground, name: str, provider_id: str = "") -> Observation[Instance]:
    ref = InstanceRef(name, provider_id)
    return ground.instances.observe({ref}, time.monotonic())[ref]


def seen(observed: Observation[Instance]) -> Instance:
    assert isinstance(observed, Seen), observed
    return observed.value


def test_an_instance_is_found_by_its_name_and_then_by_its_provider_id(
    ground: Ground,
) -> None:
    instance_id = ground.boot("found")
    by_name = seen(look(ground, "found"))
    assert by_name.id == instance_id
    assert by_name.phase is Phase.RUNNING
    assert by_name.provider_id == f"openstack:///{instance_id}"
    assert by_name.instance_type
    assert by_name.zone
    assert by_name.region == "RegionOne"
    assert by_name.addresses_known
    assert {a.type for a in by_name.addresses} == {AddressType.INTERNAL_IP}
    assert seen(look(ground, "any", by_name.provider_id)) == by_name


def test_a_shut_down_instance_is_stopped(ground: Ground) -> None:
    instance_id = ground.boot("stops")
    ground.stop(instance_id)
    assert seen(look(ground, "stops")).phase is Phase.STOPPED


def test_a_renamed_instance_keeps_its_provider_id(ground: Ground) -> None:
    instance_id = ground.boot("before")
    provider_id = seen(look(ground, "before")).provider_id
    ground.rename(instance_id, "after")
    assert seen(look(ground, "before", provider_id)).name == "after"
    assert look(ground, "before") == Absent(by_id=False)


def test_a_deleted_instance_is_absent_and_that_can_be_confirmed(ground: Ground) -> None:
    instance_id = ground.boot("goes")
    provider_id = seen(look(ground, "goes")).provider_id
    ref, by_name = InstanceRef("goes", provider_id), InstanceRef("goes")
    assert not ground.instances.confirm_absent(ref)
    assert not ground.instances.confirm_absent(by_name)
    ground.delete(instance_id)
    assert look(ground, "goes", provider_id) == Absent(by_id=True)
    assert look(ground, "goes") == Absent(by_id=False)
    assert ground.instances.confirm_absent(ref)
    assert ground.instances.confirm_absent(by_name)


def test_what_never_was_is_absent(ground: Ground) -> None:
    ground.boot("anybody")
    assert look(ground, "nobody", NOBODY) == Absent(by_id=True)
    assert look(ground, "nobody") == Absent(by_id=False)


def test_two_instances_of_one_name_are_neither(ground: Ground) -> None:
    first, second = ground.boot("twin"), ground.boot("twin")
    observed = look(ground, "twin")
    assert isinstance(observed, Unknown)
    assert isinstance(observed.error, errors.Ambiguous)
    for instance_id in (first, second):
        found = seen(look(ground, "twin", f"openstack:///{instance_id}"))
        assert found.id == instance_id


@pytest.mark.parametrize(
    "provider_id", ["static://a/b", "dvp://vm-1", "openstack://Elsewhere/id-1"]
)
def test_what_belongs_to_others_is_foreign(ground: Ground, provider_id: str) -> None:
    assert isinstance(look(ground, "foreign", provider_id), Foreign)


def test_many_refs_get_one_answer_each(ground: Ground) -> None:
    ground.boot("one-of-many")
    refs = {InstanceRef("one-of-many"), InstanceRef("no"), InstanceRef("x", NOBODY)}
    answers = ground.instances.observe(refs, time.monotonic())
    assert set(answers) == refs


def test_a_look_at_one_instance_tells_its_phase_and_no_addresses(
    ground: Ground,
) -> None:
    instance_id = ground.boot("looked-at")
    ref = InstanceRef("looked-at", f"openstack:///{instance_id}")
    found = seen(ground.instances.look({ref})[ref])
    assert (found.id, found.phase) == (instance_id, Phase.RUNNING)
    assert (found.addresses, found.addresses_known) == ((), False)
    ground.stop(instance_id)
    assert seen(ground.instances.look({ref})[ref]).phase is Phase.STOPPED
    ground.delete(instance_id)
    assert ground.instances.look({ref}) == {ref: Absent(by_id=True)}


def test_a_look_at_several_answers_for_each(ground: Ground) -> None:
    """Also for what is gone, for what is foreign, and for what has no id."""
    instance_id = ground.boot("one-of-several")
    there = InstanceRef("a", f"openstack:///{instance_id}")
    gone, foreign = InstanceRef("b", NOBODY), InstanceRef("c", "static://a/b")
    unnamed = InstanceRef("one-of-several")
    found = ground.instances.look({there, gone, foreign, unnamed})
    assert set(found) == {there, gone, foreign, unnamed}
    assert seen(found[there]).id == instance_id
    assert found[gone] == Absent(by_id=True)
    assert isinstance(found[foreign], Foreign)
    assert isinstance(found[unnamed], Unknown)
