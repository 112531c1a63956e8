"""What every implementation of `Instances` does, row by row."""

import abc
import dataclasses
import time
from typing import Protocol

from lib.cloud import errors, protocol
from lib.cloud.model import (
    Absent,
    AddressType,
    Instance,
    InstanceRef,
    NotManaged,
    Observation,
    Phase,
    Seen,
    Unknown,
)

ONE_INTERNAL = frozenset({AddressType.INTERNAL_IP})


class Ground(Protocol):
    """A cloud, and the means to change it; each change has happened when it returns.

    region: of its instances; empty where it has none. unknown: a provider ID of this
    cloud that no instance has. foreign: provider IDs of other clouds and regions.
    address_types: of the addresses that a running instance has.
    """

    @property
    def instances(self) -> protocol.Instances: ...

    @property
    def region(self) -> str: ...

    @property
    def unknown(self) -> str: ...

    @property
    def foreign(self) -> tuple[str, ...]: ...

    @property
    def address_types(self) -> frozenset[AddressType]: ...

    def provider_id(self, instance_id: str) -> str: ...

    def boot(self, name: str) -> str:
        """Create a running instance; return its ID."""
        ...

    def stop(self, instance_id: str) -> None: ...

    def rename(self, instance_id: str, name: str) -> None: ...

    def delete(self, instance_id: str) -> None: ...


def look(ground: Ground, name: str, provider_id: str = "") -> Observation[Instance]:
    ref = InstanceRef(name, provider_id)
    return ground.instances.observe({ref}, time.monotonic())[ref]


def read_value(observed: Observation[Instance]) -> Instance:
    assert isinstance(observed, Seen), observed
    return observed.value


class InMemory(abc.ABC):
    """What grounds of clouds in memory share."""

    @abc.abstractmethod
    def stored(self, instance_id: str) -> Instance:
        """Return an instance that is there."""

    @abc.abstractmethod
    def put(self, instance: Instance) -> None:
        """Keep an instance in the place of the one of its ID."""

    def stop(self, instance_id: str) -> None:
        self.put(dataclasses.replace(self.stored(instance_id), phase=Phase.STOPPED))

    def rename(self, instance_id: str, name: str) -> None:
        self.put(dataclasses.replace(self.stored(instance_id), name=name))


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    def test_an_instance_is_found_by_its_name_and_then_by_its_provider_id(
        self,
        ground: Ground,
    ) -> None:
        instance_id = ground.boot("found")
        by_name = read_value(look(ground, "found"))
        assert by_name.id == instance_id
        assert by_name.phase is Phase.RUNNING
        assert by_name.provider_id == ground.provider_id(instance_id)
        assert by_name.instance_type
        assert by_name.zone
        assert by_name.region == ground.region
        assert by_name.addresses_known
        assert {a.type for a in by_name.addresses} == ground.address_types
        assert all(a.address for a in by_name.addresses)
        assert read_value(look(ground, "any", by_name.provider_id)) == by_name

    def test_a_shut_down_instance_is_stopped(self, ground: Ground) -> None:
        instance_id = ground.boot("stops")
        ground.stop(instance_id)
        assert read_value(look(ground, "stops")).phase is Phase.STOPPED

    def test_a_renamed_instance_keeps_its_provider_id(self, ground: Ground) -> None:
        instance_id = ground.boot("before")
        provider_id = read_value(look(ground, "before")).provider_id
        ground.rename(instance_id, "after")
        assert read_value(look(ground, "before", provider_id)).name == "after"
        assert look(ground, "before") == Absent(by_id=False)

    def test_a_deleted_instance_is_absent_and_that_can_be_confirmed(
        self, ground: Ground
    ) -> None:
        instance_id = ground.boot("goes")
        provider_id = read_value(look(ground, "goes")).provider_id
        ref, by_name = InstanceRef("goes", provider_id), InstanceRef("goes")
        assert not ground.instances.confirm_absent(ref)
        assert not ground.instances.confirm_absent(by_name)
        ground.delete(instance_id)
        assert look(ground, "goes", provider_id) == Absent(by_id=True)
        assert look(ground, "goes") == Absent(by_id=False)
        assert ground.instances.confirm_absent(ref)
        assert ground.instances.confirm_absent(by_name)

    def test_what_never_was_is_absent(self, ground: Ground) -> None:
        ground.boot("anybody")
        assert look(ground, "unknown", ground.unknown) == Absent(by_id=True)
        assert look(ground, "unknown") == Absent(by_id=False)

    def test_two_instances_of_one_name_are_neither(self, ground: Ground) -> None:
        first, second = ground.boot("twin"), ground.boot("twin")
        observed = look(ground, "twin")
        assert isinstance(observed, Unknown)
        assert isinstance(observed.error, errors.Ambiguous)
        for instance_id in (first, second):
            instance = read_value(look(ground, "twin", ground.provider_id(instance_id)))
            assert instance.id == instance_id

    def test_what_belongs_to_others_is_foreign(self, ground: Ground) -> None:
        for provider_id in ("static://a/b", *ground.foreign):
            observation = look(ground, "foreign", provider_id)
            assert isinstance(observation, NotManaged), provider_id

    def test_many_refs_get_one_answer_each(self, ground: Ground) -> None:
        ground.boot("one-of-many")
        refs = {
            InstanceRef("one-of-many"),
            InstanceRef("no"),
            InstanceRef("x", ground.unknown),
        }
        answers = ground.instances.observe(refs, time.monotonic())
        assert set(answers) == refs

    def test_a_look_at_one_instance_tells_its_phase_and_no_addresses(
        self,
        ground: Ground,
    ) -> None:
        instance_id = ground.boot("looked-at")
        ref = InstanceRef("looked-at", ground.provider_id(instance_id))
        instance = read_value(ground.instances.look({ref})[ref])
        assert (instance.id, instance.phase) == (instance_id, Phase.RUNNING)
        assert (instance.addresses, instance.addresses_known) == ((), False)
        ground.stop(instance_id)
        assert read_value(ground.instances.look({ref})[ref]).phase is Phase.STOPPED
        ground.delete(instance_id)
        assert ground.instances.look({ref}) == {ref: Absent(by_id=True)}

    def test_a_look_at_several_answers_for_each(self, ground: Ground) -> None:
        """Also for what is gone, for what is foreign, and for what has no id."""
        instance_id = ground.boot("one-of-several")
        instance_ref = InstanceRef("a", ground.provider_id(instance_id))
        gone, foreign = InstanceRef("b", ground.unknown), InstanceRef(
            "c", "static://a/b"
        )
        unnamed = InstanceRef("one-of-several")
        observations = ground.instances.look({instance_ref, gone, foreign, unnamed})
        assert set(observations) == {instance_ref, gone, foreign, unnamed}
        assert read_value(observations[instance_ref]).id == instance_id
        assert observations[gone] == Absent(by_id=True)
        assert isinstance(observations[foreign], NotManaged)
        assert isinstance(observations[unnamed], Unknown)
