"""What each step decides, by tables."""

import datetime

import pytest

from lib.cloud import catalog
from lib.discovery import decide, model, storage_classes
from lib.kube import objects

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
PROVISIONER = "cinder.csi.openstack.org"
OLD = NOW - datetime.timedelta(hours=1)


def volume(
    key: str, name: str, created: datetime.datetime | None = OLD
) -> catalog.Volume:
    return catalog.Volume(key, name, created)


def persistent(
    name: str, csi: str | None = None, cinder: str | None = None
) -> model.PersistentVolume:
    return model.PersistentVolume(
        objects.ObjectMeta(name=name),
        model.PersistentVolumeSpec(
            None if csi is None else model.CsiSource(csi),
            None if cinder is None else model.CinderSource(cinder),
        ),
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
        "just made: its PersistentVolume may still come",
        volume("1", "pvc-1", NOW - datetime.timedelta(seconds=59)),
        (),
        False,
    ),
    (
        "made a minute ago",
        volume("1", "pvc-1", NOW - datetime.timedelta(seconds=60)),
        (),
        True,
    ),
    ("made nobody knows when", volume("1", "pvc-1", None), (), True),
]


@pytest.mark.parametrize(
    ("one", "known", "is_orphan"),
    [row[1:] for row in ORPHANS],
    ids=[r[0] for r in ORPHANS],
)
def test_orphans(
    one: catalog.Volume, known: tuple[model.PersistentVolume, ...], is_orphan: bool
) -> None:
    seen = model.SeenDisks((one,), known, frozenset())
    found = decide.orphans(seen, NOW)
    assert found == (frozenset({(one.id, one.name)}) if is_orphan else frozenset())


def test_the_vector_is_changed_only_when_it_differs() -> None:
    shown = frozenset({("1", "pvc-1")})
    same = model.SeenDisks((volume("1", "pvc-1"),), (), shown)
    assert decide.decide(same, model.Settings(), NOW).actions == ()
    gone = model.SeenDisks((), (), shown)
    actions = decide.decide(gone, model.Settings(), NOW).actions
    assert actions == (model.ShowOrphans(frozenset()),)


def stored(
    name: str,
    volume_type: str,
    *,
    ours: bool = True,
    default: bool = False,
    expands: bool = True,
    provisioner: str = PROVISIONER,
    reclaim: str = "Delete",
) -> model.StoredClass:
    return model.StoredClass(
        objects.ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            resource_version="7",
            labels={model.MARK[0]: model.MARK[1]} if ours else {},
            annotations={model.DEFAULT_CLASS: "true"} if default else {},
        ),
        provisioner,
        {"type": volume_type},
        reclaim,
        "WaitForFirstConsumer",
        expands,
    )


def create(name: str, volume_type: str, default: bool = False) -> model.CreateClass:
    return model.CreateClass(storage_classes.StorageClass(name, volume_type, default))


def delete(name: str) -> model.DeleteClass:
    return model.DeleteClass(name, f"uid-{name}", "7")


CLASSES = [
    (
        "the first of new ones is the default",
        ("b", "a"),
        (),
        "",
        (create("a", "a", True), create("b", "b")),
    ),
    ("what holds is left alone", ("a",), (stored("a", "a", default=True),), "", ()),
    (
        "the default that there is stays it",
        ("a", "b"),
        (stored("a", "a"), stored("b", "b", default=True)),
        "",
        (),
    ),
    (
        "somebody else's default stays the only one",
        ("a",),
        (stored("nfs", "x", ours=False, default=True, provisioner="nfs"),),
        "",
        (create("a", "a"),),
    ),
    (
        "a wish moves the mark, and takes it away first",
        ("a", "b"),
        (stored("a", "a"), stored("b", "b", default=True)),
        "a",
        (model.ChangeClass("b", "7", False), model.ChangeClass("a", "7", True)),
    ),
    (
        "a wish that no class has marks none",
        ("a",),
        (stored("a", "a", default=True),),
        "zzz",
        (model.ChangeClass("a", "7", False),),
    ),
    (
        "a type that is gone takes its class along",
        ("a",),
        (stored("a", "a", default=True), stored("old", "old")),
        "",
        (delete("old"),),
    ),
    (
        "classes of others are never touched",
        ("a",),
        (
            stored("a", "a", default=True),
            stored("old", "old", ours=False),
            stored("b", "other", ours=False),
        ),
        "",
        (),
    ),
    (
        "another type of the same name: made anew, ours as it is",
        ("SSD R1",),
        (stored("ssd-r1", "ssd-r1", default=True),),
        "",
        (delete("ssd-r1"), create("ssd-r1", "SSD R1", True)),
    ),
    (
        "a policy that is another: made anew",
        ("a",),
        (stored("a", "a", default=True, reclaim="Retain"),),
        "",
        (delete("a"), create("a", "a", True)),
    ),
    (
        "what can be changed is changed",
        ("a",),
        (stored("a", "a", default=True, expands=False),),
        "",
        (model.ChangeClass("a", "7", None),),
    ),
    (
        "somebody else's that does as well",
        ("a",),
        (stored("a", "a", ours=False, default=True),),
        "",
        (),
    ),
]


@pytest.mark.parametrize(
    ("types", "there", "default", "actions"),
    [row[1:] for row in CLASSES],
    ids=[row[0] for row in CLASSES],
)
def test_classes(
    types: tuple[str, ...],
    there: tuple[model.StoredClass, ...],
    default: str,
    actions: tuple[model.Action, ...],
) -> None:
    assert of_classes(types, there, default) == actions


def of_classes(
    types: tuple[str, ...], there: tuple[model.StoredClass, ...], default: str = ""
) -> tuple[model.Action, ...]:
    seen = model.SeenClasses(tuple(map(catalog.StorageType, types)), there)
    settings = model.Settings(
        manages_classes=True,
        provisioner=PROVISIONER,
        rules=storage_classes.Rules(default=default),
    )
    return decide.decide(seen, settings, NOW).actions


PROBLEMS = [
    ("two types of one name", ("SSD R1", "ssd-r1"), (), "makes the same StorageClass"),
    ("a name that becomes empty", ("тип",), (), "volume type: 'тип'"),
    (
        "a name that somebody else has",
        ("a",),
        (stored("a", "other", ours=False),),
        "it is somebody else's",
    ),
]


@pytest.mark.parametrize(
    ("types", "there", "said"),
    [row[1:] for row in PROBLEMS],
    ids=[row[0] for row in PROBLEMS],
)
def test_a_problem_is_told_after_everything_else_is_done(
    types: tuple[str, ...], there: tuple[model.StoredClass, ...], said: str
) -> None:
    actions = of_classes(("good", *types), there)
    assert actions[0] == create("good", "good", True)
    (complaint,) = actions[1:]
    assert isinstance(complaint, model.Complain)
    assert said in " ".join(complaint.reasons)


def test_a_class_whose_type_is_in_dispute_is_kept() -> None:
    """The type that holds it keeps it; the newcomer is told of."""
    there = (stored("ssd-r1", "ssd-r1", default=True),)
    (complaint,) = of_classes(("SSD R1", "ssd-r1"), there)
    assert isinstance(complaint, model.Complain)


def test_a_class_that_is_excluded_goes_and_is_not_made_again() -> None:
    rules = storage_classes.read_rules(["ssd-.*"])
    settings = model.Settings(provisioner=PROVISIONER, rules=rules)
    types = tuple(map(catalog.StorageType, ("SSD R1", "SSD R2", "slow")))
    there = (stored("ssd-r1", "SSD R1"), stored("slow", "slow", default=True))
    seen = model.SeenClasses(types, there)
    assert decide.decide(seen, settings, NOW).actions == (delete("ssd-r1"),)


def test_no_types_at_all_delete_no_class() -> None:
    (complaint,) = of_classes((), (stored("a", "a"),))
    assert isinstance(complaint, model.Complain)
