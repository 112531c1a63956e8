"""What each step decides, by tables."""

import datetime
from typing import Any

import pytest

from lib.cloud import catalog
from lib.discovery import decide, model, storage_classes
from lib.discovery.openstack.provider import OPENSTACK
from lib.kube import objects
from lib.kube import persistent_volumes as kube_volumes
from lib.reconcile.outcome import Outcome

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
PROVISIONER = "cinder.csi.openstack.org"
OLD = NOW - datetime.timedelta(hours=1)
NAMES_OF_IDS = {"B": "id-b", "new": "id-old"}
"""Types that were renamed: they keep the ID of the old name."""


def volume(
    key: str, name: str, created: datetime.datetime | None = OLD
) -> catalog.CatalogVolume:
    return catalog.CatalogVolume(key, name, created)


def persistent(
    name: str, csi: str | None = None, cinder: str | None = None
) -> kube_volumes.PersistentVolume:
    return kube_volumes.PersistentVolume(
        objects.ObjectMeta(name=name),
        kube_volumes.PersistentVolumeSpec(
            None if csi is None else kube_volumes.CsiSource(csi),
            None if cinder is None else kube_volumes.CinderSource(cinder),
        ),
    )


def claim(uid: str, volume_name: str = "") -> kube_volumes.VolumeClaim:
    return kube_volumes.VolumeClaim(
        objects.ObjectMeta(name="claim", uid=uid), kube_volumes.ClaimSpec(volume_name)
    )


ORPHANS = [
    ("no PersistentVolume at all", volume("1", "pvc-1"), (), True),
    ("one of the volume's name", volume("1", "pvc-1"), (persistent("pvc-1"),), False),
    (
        "a static one that names its id",
        volume("1", "data"),
        (persistent("mine", csi="1"),),
        False,
    ),
    (
        "one of the in-tree driver that names its id",
        volume("1", "data"),
        (persistent("mine", cinder="1"),),
        False,
    ),
    (
        "one that names another id",
        volume("1", "data"),
        (persistent("mine", csi="2"),),
        True,
    ),
    (
        "one without an id, and a volume without a name",
        volume("1", ""),
        (persistent("mine"),),
        True,
    ),
    (
        "a second volume of the name: the PersistentVolume names the first by ID",
        volume("2", "pvc-1"),
        (persistent("pvc-1", csi="1"),),
        True,
    ),
    (
        "younger than the minimum age: its PersistentVolume may still come",
        volume("1", "pvc-1", NOW - datetime.timedelta(seconds=899)),
        (),
        False,
    ),
    (
        "as old as the minimum age",
        volume("1", "pvc-1", NOW - datetime.timedelta(minutes=15)),
        (),
        True,
    ),
    (
        "a clone that takes longer: not complete yet",
        catalog.CatalogVolume("1", "pvc-1", OLD, is_in_creation=True),
        (),
        False,
    ),
    ("creation time unknown", volume("1", "pvc-1", None), (), True),
]


@pytest.mark.parametrize(
    ("disk", "known", "is_orphan"),
    [row[1:] for row in ORPHANS],
    ids=[r[0] for r in ORPHANS],
)
def test_orphans(
    disk: catalog.CatalogVolume,
    known: tuple[kube_volumes.PersistentVolume, ...],
    is_orphan: bool,
) -> None:
    observed = model.ObservedDisks((disk,), known, frozenset())
    actual = decide.orphans(observed, model.ORPHAN_MIN_AGE, NOW)
    assert actual == (frozenset({(disk.id, disk.name)}) if is_orphan else frozenset())


CLAIMS = [
    ("a claim that is still being provisioned", volume("1", "pvc-1"), claim("1"), 0),
    ("a claim of another volume", volume("1", "pvc-1"), claim("2"), 1),
    ("a claim that is bound elsewhere", volume("1", "pvc-1"), claim("1", "mine"), 1),
    ("a volume without the prefix", volume("1", "1"), claim("1"), 1),
]


@pytest.mark.parametrize(
    ("disk", "known", "count"), [row[1:] for row in CLAIMS], ids=[r[0] for r in CLAIMS]
)
def test_a_volume_of_an_unbound_claim_is_not_orphaned(
    disk: catalog.CatalogVolume, known: kube_volumes.VolumeClaim, count: int
) -> None:
    observed = model.ObservedDisks((disk,), (), frozenset(), (known,))
    assert len(decide.orphans(observed, model.ORPHAN_MIN_AGE, NOW)) == count


def test_the_vector_is_changed_only_when_it_differs() -> None:
    shown = frozenset({("1", "pvc-1")})
    same = model.ObservedDisks((volume("1", "pvc-1"),), (), shown)
    assert decide.decide(same, model.DiscoverySettings(), NOW).actions == ()
    gone = model.ObservedDisks((), (), shown)
    actions = decide.decide(gone, model.DiscoverySettings(), NOW).actions
    assert actions == (model.ShowOrphans(frozenset()),)


SECRET = b'{"metadata": {"name": "d8-cloud-provider-discovery-data"}}'


def stored(
    name: str,
    volume_type: str,
    *,
    is_owned: bool = True,
    default: bool = False,
    expands: bool = True,
    provisioner: str = PROVISIONER,
    reclaim: str = "Delete",
    choice: str = "",
    annotation: str = model.DEFAULT_CLASS,
) -> model.StoredClass:
    annotations = {model.TYPE_ID: f"id-{volume_type}"} if is_owned else {}
    if choice:
        annotations[model.DEFAULT_CHOICE] = choice
    return model.StoredClass(
        objects.ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            labels=(
                {model.OWNERSHIP_LABEL[0]: model.OWNERSHIP_LABEL[1]} if is_owned else {}
            ),
            annotations={**annotations, annotation: "true"} if default else annotations,
        ),
        provisioner,
        {"type": volume_type},
        reclaim,
        "WaitForFirstConsumer",
        expands,
    )


def create(
    name: str, volume_type: str, default: bool = False, choice: str = ""
) -> model.CreateClass:
    expected = storage_classes.StorageClass(name, volume_type, default)
    type_id = NAMES_OF_IDS.get(volume_type, f"id-{volume_type}")
    return model.CreateClass(
        expected, catalog.StorageType(volume_type, type_id), choice
    )


def change(
    name: str, default: bool | None = None, type_id: str = "", choice: str = ""
) -> model.ChangeClass:
    return model.ChangeClass(name, "7", default, type_id, choice)


def delete(name: str) -> model.DeleteClass:
    return model.DeleteClass(name, f"uid-{name}", "7")


CLASSES = [
    (
        "the first of new ones is the default",
        ("b", "a"),
        (),
        (create("a", "a", True, "a"), create("b", "b", choice="a")),
    ),
    (
        "what holds is not changed",
        ("a",),
        (stored("a", "a", default=True, choice="a"),),
        (),
    ),
    (
        "the default stays the default, and its name is recorded",
        ("a", "b"),
        (stored("a", "a"), stored("b", "b", default=True)),
        (change("b", choice="b"), change("a", choice="b")),
    ),
    (
        "a default of others stays the only one",
        ("a",),
        (stored("nfs", "x", is_owned=False, default=True, provisioner="nfs"),),
        (create("a", "a", choice="nfs"),),
    ),
    (
        "a default of others by the beta annotation stays the only one",
        ("a",),
        (
            stored(
                "nfs",
                "x",
                is_owned=False,
                default=True,
                provisioner="nfs",
                annotation=model.BETA_DEFAULT_CLASS,
            ),
        ),
        (create("a", "a", choice="nfs"),),
    ),
    (
        "a type that was not found by its ID takes its class along",
        ("a",),
        (
            stored("a", "a", default=True, choice="a"),
            stored("old", "old", choice="a"),
        ),
        (delete("old"),),
    ),
    (
        "a type that was renamed takes the class of its old name along",
        ("a", "new"),
        (
            stored("a", "a", default=True, choice="a"),
            stored("old", "old", choice="a"),
        ),
        (create("new", "new", choice="a"), delete("old")),
    ),
    (
        "a default class is deleted last, when the others record its name",
        ("a", "b"),
        (stored("a", "a"), stored("old", "old", default=True)),
        (
            change("a", choice="old"),
            create("b", "b", choice="old"),
            delete("old"),
        ),
    ),
    (
        "a default class that comes back is the default again",
        ("a", "old"),
        (stored("a", "a", choice="old"),),
        (create("old", "old", True, "old"),),
    ),
    (
        "a default class that is recreated comes last",
        ("B", "c", "a"),
        (
            stored("a", "a", choice="b"),
            stored("b", "b", default=True, choice="b"),
        ),
        (
            create("c", "c", choice="b"),
            delete("b"),
            create("b", "B", True, "b"),
        ),
    ),
    (
        "the default between its deletion and its creation",
        ("B", "a"),
        (stored("a", "a", choice="b"),),
        (create("b", "B", True, "b"),),
    ),
    (
        "classes of others are never changed",
        ("a",),
        (
            stored("a", "a", default=True, choice="a"),
            stored("old", "old", is_owned=False),
            stored("b", "other", is_owned=False),
        ),
        (),
    ),
    (
        "another policy: recreated",
        ("a",),
        (stored("a", "a", default=True, choice="a", reclaim="Retain"),),
        (
            model.RecordDefault("a", SECRET),
            delete("a"),
            create("a", "a", True, "a"),
        ),
    ),
    (
        "what can be changed is changed",
        ("a",),
        (stored("a", "a", default=True, choice="a", expands=False),),
        (change("a"),),
    ),
    (
        "an equivalent class of others",
        ("a",),
        (stored("a", "a", is_owned=False, default=True),),
        (),
    ),
]


@pytest.mark.parametrize(
    ("types", "classes", "actions"),
    [row[1:] for row in CLASSES],
    ids=[row[0] for row in CLASSES],
)
def test_classes(
    types: tuple[str, ...],
    classes: tuple[model.StoredClass, ...],
    actions: tuple[model.Action, ...],
) -> None:
    assert of_classes(types, classes) == actions


CHOSEN = [
    (
        "the old default loses the annotation first",
        (stored("a", "a"), stored("b", "b", default=True)),
        "a",
        (change("b", False, choice="a"), change("a", True, choice="a")),
    ),
    (
        "also one with the beta annotation",
        (
            stored("a", "a"),
            stored("b", "b", default=True, annotation=model.BETA_DEFAULT_CLASS),
        ),
        "a",
        (change("b", False, choice="a"), change("a", True, choice="a")),
    ),
    (
        "also one that is deleted",
        (stored("a", "a"), stored("b", "b"), stored("old", "old", default=True)),
        "a",
        (delete("old"), change("a", True, choice="a"), change("b", choice="a")),
    ),
    (
        "a setting that names no class: no default, and nothing is recorded",
        (stored("a", "a", default=True), stored("b", "b")),
        "zzz",
        (change("a", False),),
    ),
]


@pytest.mark.parametrize(
    ("classes", "setting", "actions"),
    [row[1:] for row in CHOSEN],
    ids=[row[0] for row in CHOSEN],
)
def test_the_default_class_that_the_user_sets(
    classes: tuple[model.StoredClass, ...],
    setting: str,
    actions: tuple[model.Action, ...],
) -> None:
    assert of_classes(("a", "b"), classes, setting) == actions


def of_classes(
    types: tuple[str, ...],
    classes: tuple[model.StoredClass, ...],
    default: str = "",
    recorded: str = "",
) -> tuple[model.Action, ...]:
    """Return the actions of a step that does not fail."""
    outcome = decided(types, classes, default, recorded=recorded)
    assert outcome.failure is None
    return outcome.actions


def complaint(outcome: Outcome[model.Action]) -> str:
    """Return what the user has to correct; empty when nothing."""
    assert outcome.failure is None or isinstance(outcome.failure, model.InvalidCatalog)
    return str(outcome.failure or "")


def decided(
    types: tuple[str, ...],
    classes: tuple[model.StoredClass, ...],
    default: str = "",
    missing: model.MissingType = model.MissingType.ABSENT,
    recorded: str = "",
    secret: bytes | None = SECRET,
) -> Outcome[model.Action]:
    """Decide; every owned class that has no type in the list is `missing`."""
    offered = tuple(
        catalog.StorageType(item, NAMES_OF_IDS.get(item, f"id-{item}"))
        for item in types
    )
    not_listed = {
        item.metadata.name: missing
        for item in classes
        if item.is_owned and not item.is_listed(offered)
    }
    observed = model.ObservedClasses(offered, classes, not_listed, secret, recorded)
    settings = model.DiscoverySettings(
        manages_classes=True,
        provider=OPENSTACK,
        rules=storage_classes.StorageClassRules(default=default),
    )
    return decide.decide(observed, settings, NOW)


MISSING = [
    (model.MissingType.RECENT, False, False),
    (model.MissingType.ABSENT, True, False),
    (model.MissingType.EXISTS, False, True),
    (model.MissingType.UNKNOWN, False, True),
]


def test_every_state_of_a_missing_type_has_a_row() -> None:
    assert [row[0] for row in MISSING] == list(model.MissingType)


@pytest.mark.parametrize(
    ("missing", "is_deleted", "is_reported"),
    MISSING,
    ids=[row[0].name for row in MISSING],
)
def test_a_class_is_deleted_only_when_its_type_was_not_found_by_id(
    missing: model.MissingType, is_deleted: bool, is_reported: bool
) -> None:
    """Also where another type would take the name over."""
    holder = stored("a", "a", default=True, choice="a")
    for existing, types in (
        ((holder, stored("old", "old", choice="a")), ("a",)),
        ((holder, stored("old", "old", choice="a")), ("a", "OLD")),
    ):
        observed = decided(types, existing, missing=missing)
        deleted = [a.name for a in observed.actions if isinstance(a, model.DeleteClass)]
        assert deleted == (["old"] if is_deleted else [])
        reported = 'StorageClass "old": volume type "old": not in the list'
        assert (reported in complaint(observed)) == is_reported
        assert bool(complaint(observed)) == is_reported
        created = [a for a in observed.actions if isinstance(a, model.CreateClass)]
        assert len(created) == (is_deleted and "OLD" in types)


def test_a_default_class_that_is_lost_is_reported_and_not_replaced() -> None:
    """Never another default by itself; a setting or an annotation chooses one."""
    existing = (stored("a", "a", choice="fast"),)
    observed = decided(("a",), existing)
    assert observed.actions == ()
    reason = complaint(observed)
    assert reason.startswith('default StorageClass "fast": not found')
    assert "--default-storage-class" in reason
    assert of_classes(("a",), existing, "a") == (change("a", True, choice="a"),)
    annotated = (stored("a", "a", default=True, choice="fast"),)
    assert of_classes(("a",), annotated) == (change("a", choice="a"),)


RETAINED = stored("b", "b", default=True, choice="b", reclaim="Retain")
RECORDS = [
    (
        "recorded already: recreated",
        ("b",),
        (RETAINED,),
        "b",
        (delete("b"), create("b", "b", True, "b")),
    ),
    (
        "deleted, not yet created: the default, though others come first by name",
        ("a", "b"),
        (),
        "b",
        (create("a", "a", choice="b"), create("b", "b", True, "b")),
    ),
    (
        "recreated: the record is removed",
        ("a", "b"),
        (stored("a", "a", choice="b"), stored("b", "b", default=True, choice="b")),
        "b",
        (model.RecordDefault("", SECRET),),
    ),
    (
        "another class records it: the Secret does not",
        ("a", "b"),
        (stored("a", "a", choice="b"), RETAINED),
        "",
        (delete("b"), create("b", "b", True, "b")),
    ),
    (
        "the other class is deleted: the Secret records it",
        ("b",),
        (stored("a", "a", choice="b"), RETAINED),
        "",
        (
            model.RecordDefault("b", SECRET),
            delete("a"),
            delete("b"),
            create("b", "b", True, "b"),
        ),
    ),
    (
        "what a class records counts before the Secret",
        ("a", "b"),
        (stored("a", "a", choice="a"),),
        "b",
        (change("a", True), create("b", "b", choice="a")),
    ),
]


@pytest.mark.parametrize(
    ("types", "classes", "recorded", "actions"),
    [row[1:] for row in RECORDS],
    ids=[row[0] for row in RECORDS],
)
def test_the_name_of_a_default_class_that_is_recreated_is_recorded(
    types: tuple[str, ...],
    classes: tuple[model.StoredClass, ...],
    recorded: str,
    actions: tuple[model.Action, ...],
) -> None:
    """In the Secret with the discovery data, unless another owned class holds it."""
    assert set(of_classes(types, classes, recorded=recorded)) == set(actions)
    in_order = of_classes(types, classes, recorded=recorded)
    records = [i for i, a in enumerate(in_order) if a == actions[0]]
    if isinstance(actions[0], model.RecordDefault) and actions[0].name:
        assert records == [0], "before anything is deleted"


def test_a_single_default_class_is_not_recreated_where_it_can_t_be_recorded() -> None:
    observed = decided(("b",), (RETAINED,), secret=None)
    assert observed.actions == ()
    assert "not recreated: Secret kube-system/" in complaint(observed)
    # What the user names needs no record.
    observed = decided(("b",), (RETAINED,), "b", secret=None)
    assert observed.actions[0] == delete("b")


PROBLEMS = [
    (
        "two types of one name",
        ("SSD R1", "ssd-r1"),
        (),
        "results in the same StorageClass",
    ),
    ("a name that becomes empty", ("тип",), (), 'volume type: invalid value "тип"'),
    (
        "a name that somebody else has",
        ("a",),
        (stored("a", "other", is_owned=False),),
        "is not owned by cloud-data-discoverer",
    ),
]


@pytest.mark.parametrize(
    ("types", "classes", "expected"),
    [row[1:] for row in PROBLEMS],
    ids=[row[0] for row in PROBLEMS],
)
def test_a_problem_is_told_after_everything_else_is_done(
    types: tuple[str, ...], classes: tuple[model.StoredClass, ...], expected: str
) -> None:
    observed = decided(("good", *types), classes)
    assert observed.actions == (create("good", "good", True, "good"),)
    assert expected in complaint(observed)


def test_a_class_whose_type_is_in_dispute_is_kept() -> None:
    """The type that holds it keeps it; the newcomer is told of."""
    existing = (stored("ssd-r1", "ssd-r1", default=True, choice="ssd-r1"),)
    observed = decided(("SSD R1", "ssd-r1"), existing)
    assert observed.actions == ()
    assert complaint(observed)


def test_a_class_that_is_excluded_goes_and_is_not_made_again() -> None:
    rules = storage_classes.read_rules(["ssd-.*"])
    settings = model.DiscoverySettings(provider=OPENSTACK, rules=rules)
    types = tuple(map(catalog.StorageType, ("SSD R1", "SSD R2", "slow")))
    existing = (
        stored("ssd-r1", "SSD R1"),
        stored("slow", "slow", default=True, choice="slow"),
    )
    observed = model.ObservedClasses(types, existing)
    assert decide.decide(observed, settings, NOW).actions == (delete("ssd-r1"),)


def offered(
    types: tuple[catalog.StorageType, ...],
    classes: tuple[model.StoredClass, ...],
    recorded: str = "",
) -> tuple[model.Action, ...]:
    """Return the changes of classes for these types."""
    observed = model.ObservedClasses(types, classes, {}, SECRET, recorded)
    settings = model.DiscoverySettings(manages_classes=True, provider=OPENSTACK)
    return decide.decide(observed, settings, NOW).actions


def test_reclaim_policy_and_expansion_are_those_of_the_type() -> None:
    """The policy is immutable: the class is recreated; expansion is changed."""
    kept = catalog.StorageType(
        "a", "id-a", reclaim_policy="Retain", is_expandable=False
    )
    expected = model.CreateClass(
        storage_classes.StorageClass("a", "a", True), kept, "a"
    )
    mine: dict[str, Any] = {"default": True, "choice": "a"}
    retained = stored("a", "a", reclaim="Retain", **mine)
    same = stored("a", "a", reclaim="Retain", expands=False, **mine)
    smaller = model.ChangeClass("a", "7", None, is_expandable=False)
    deleted = stored("a", "a", **mine)
    assert offered((kept,), ()) == (expected,)
    assert offered((kept,), (deleted,), "a")[-2:] == (delete("a"), expected)
    assert offered((kept,), (retained,)) == (smaller,)
    assert offered((kept,), (same,)) == ()


def test_no_types_at_all_delete_no_class() -> None:
    observed = decided((), (stored("a", "a"),))
    assert observed.actions == ()
    assert complaint(observed)
