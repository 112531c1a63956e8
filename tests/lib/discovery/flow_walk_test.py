"""A cycle converges from any state, also when the process dies at each single call."""

import collections
import contextlib
import copy
from typing import Any

from lib.cloud import catalog
from lib.discovery import flow, model
from lib.kube import errors as kube_errors
from lib.kube import resources

ROUNDS_MAX = 20
ACTIONS = {
    ("create", "instancetypescatalogs"),
    ("create", "secrets"),
    ("create", "storageclasses"),
    ("delete", "storageclasses"),
    ("patch", "storageclasses"),
    ("update", "instancetypescatalogs"),
    ("update", "secrets"),
}
"""Every write that a cycle can make."""


class Death(BaseException):
    """The process ends here."""


def old_state(ground: Any) -> None:
    """A cluster as it was when the cloud was another one."""
    ground.cloud.instance_types = ground.cloud.instance_types[:1]
    ground.cloud.document["images"] = ["old"]
    ground.cloud.storage_types = (
        catalog.StorageType("FAST", "id-2"),
        catalog.StorageType("SSD R1", "id-1"),
        catalog.StorageType("gone", "id-3"),
    )
    assert ground.process().cycle() == {}
    (was,) = (c for n, c in ground.classes().items() if n == "ssd-r1")
    changed = copy.deepcopy(was)
    changed["allowVolumeExpansion"] = False
    ground.api.put(resources.STORAGE_CLASSES, changed)
    ground.api.calls.clear()


def new_cloud(ground: Any) -> None:
    """One type is renamed, that of the default class; one is gone, one is new."""
    fresh = type(ground)()
    ground.cloud.instance_types = fresh.cloud.instance_types
    ground.cloud.document = fresh.cloud.document
    ground.cloud.storage_types = (
        *fresh.cloud.storage_types,
        catalog.StorageType("archive", "id-4"),
    )


def world(ground: Any) -> object:
    """What counts of the cluster in the end."""
    (types,) = ground.api.all(resources.INSTANCE_TYPES_CATALOGS)
    classes = {
        name: (
            storage_class["parameters"],
            storage_class["allowVolumeExpansion"],
            storage_class["metadata"].get("annotations", {}).get(model.DEFAULT_CLASS),
        )
        for name, storage_class in ground.classes().items()
    }
    return types["instanceTypes"], ground.secret(), classes


def defaults(ground: Any) -> list[str]:
    return [
        name
        for name, storage_class in ground.classes().items()
        if storage_class["metadata"].get("annotations", {}).get(model.DEFAULT_CLASS)
        == "true"
    ]


def walk(ground: Any, die_at: int | None) -> tuple[int, str]:
    """Live until all is well, dying once; give how many calls, and where it died."""
    passed, died_in = 0, ""

    def at_call(call: Any) -> None:
        nonlocal passed, died_in
        passed += 1
        assert len(defaults(ground)) <= 1
        if passed - 1 == die_at:
            died_in = (
                "read" if isinstance(call, str) else f"{call.verb} {call.resource}"
            )
            raise Death

    for fake in (ground.api, ground.cloud):
        fake.before_call = fake.after_call = at_call
    process = ground.process()
    quiet = 0
    for _ in range(ROUNDS_MAX):
        ground.clock.pass_by(ground.settings.period_s)
        try:
            before = len(ground.api.calls)
            failed = process.cycle()
            wrote = any(c.is_write for c in ground.api.calls[before:])
            quiet = 0 if failed or wrote else quiet + 1
            if quiet == 2:  # after one a missing type is confirmed
                return passed, died_in
        except Death:
            process = ground.process()
    raise AssertionError("it does not come to rest")


def test_death_at_each_call_is_outlived(ground: Any) -> None:
    """From nothing and from an old state; prints action x result."""
    make = type(ground)
    results: collections.Counter[tuple[str, str]] = collections.Counter()
    observed: set[tuple[str, str]] = set()
    for start in ("nothing", "old state"):

        def fresh(start: str = start) -> Any:
            ground = make()
            if start == "old state":
                old_state(ground)
                new_cloud(ground)
            return ground

        calm = fresh()
        calls, _ = walk(calm, None)
        expected = world(calm)
        observed |= {(c.verb, c.resource) for c in calm.api.calls if c.is_write}
        for die_at in range(calls):
            ground = fresh()
            _, died_in = walk(ground, die_at)
            assert world(ground) == expected, (start, die_at, died_in)
            results[start, died_in] += 1
    for (start, where), count in sorted(results.items()):
        print(f"{start:10} {where:32} outlived {count} deaths")
    assert observed == ACTIONS
    died = {where for _, where in results}
    assert {f"{verb} {resource}" for verb, resource in ACTIONS} <= died


def test_a_single_default_class_that_is_recreated_stays_the_default(
    ground: Any,
) -> None:
    """Killed at any call, while another type appears that comes first by name."""
    make = type(ground)

    def fresh() -> Any:
        ground = make()
        ground.cloud.storage_types = (catalog.StorageType("FAST", "id-2"),)
        assert ground.process().cycle() == {}
        assert defaults(ground) == ["fast"]
        ground.cloud.storage_types = (catalog.StorageType("fast", "id-2"),)
        ground.api.calls.clear()
        return ground

    calm = fresh()
    calls, _ = walk(calm, None)
    deaths: collections.Counter[str] = collections.Counter()
    for die_at in range(calls):
        ground = fresh()
        died_in = die_once(ground, die_at)
        ground.cloud.storage_types += (catalog.StorageType("archive", "id-4"),)
        walk(ground, None)
        assert defaults(ground) == ["fast"], (die_at, died_in)
        assert sorted(ground.classes()) == ["archive", "fast"]
        (secret,) = ground.api.all(resources.SECRETS)
        assert model.DEFAULT_CHOICE not in secret["metadata"].get("annotations", {})
        deaths[died_in] += 1
    for where, count in sorted(deaths.items()):
        print(f"{where:32} survived {count} deaths")
    assert {"delete storageclasses", "create storageclasses"} <= set(deaths)


def die_once(ground: Any, die_at: int) -> str:
    """Live until the process dies at this call; return where."""
    passed, died_in = 0, ""

    def at_call(call: Any) -> None:
        nonlocal passed, died_in
        passed += 1
        if passed - 1 == die_at:
            is_read = isinstance(call, str)
            died_in = "read" if is_read else f"{call.verb} {call.resource}"
            raise Death

    for fake in (ground.api, ground.cloud):
        fake.before_call = fake.after_call = at_call
    process = ground.process()
    with contextlib.suppress(Death):
        for _ in range(ROUNDS_MAX):
            ground.clock.pass_by(ground.settings.period_s)
            process.cycle()
    for fake in (ground.api, ground.cloud):
        fake.before_call = fake.after_call = lambda call: None
    return died_in


def test_a_second_process_in_between_costs_a_try_and_nothing_else(ground: Any) -> None:
    """What was seen before the other wrote is not written over it; then all is well."""
    old_state(ground)
    new_cloud(ground)
    slow, quick = ground.process(), ground.process()
    for step in ground.settings.steps:
        slow.queue.add(step.value, flow.CYCLE)
    claims = slow.queue.take_due(10)
    observed = slow.flow.observe(claims)
    assert quick.cycle() == {}
    expected = world(ground)
    refused = 0
    for snapshot in observed.values():
        for action in slow.flow.decide(snapshot, ground.now).actions:
            try:
                slow.flow.act(snapshot, action)
            except (kube_errors.Conflict, kube_errors.AlreadyExists):
                refused += 1
    assert refused >= 3
    assert world(ground) == expected
    for claim in claims:
        slow.queue.done(claim.key)
    ground.api.calls.clear()
    assert slow.cycle() == {}
    assert not any(call.is_write for call in ground.api.calls)
