"""Volume types become StorageClasses, or it is said why not."""

import re

import hypothesis
import pytest
from hypothesis import strategies

from lib.discovery import storage_classes
from lib.process import config

# Volume type, class name. Source: Deckhouse, cloud-provider-openstack, StorageClasses.
NAMES = [
    ("__DEFAULT__", "default"),
    ("SSD R1", "ssd-r1"),
    ("-Xx__$()? -foo-", "xx--foo"),
    ("  YY fast SSD-foo.", "yy-fast-ssd-foo"),
    ("ceph", "ceph"),
    ("a.b-C9", "a.b-c9"),
    ("tab\tand\u00a0space", "tabandspace"),
    ("Быстрый ssd", "ssd"),
    ("K\u212a", "k"),
]
ANY = storage_classes.StorageClassRules()


@pytest.mark.parametrize(("volume_type", "name"), NAMES)
def test_names_follow_the_rule(volume_type: str, name: str) -> None:
    """Letters, digits, - and . stay, a blank becomes -, anything else goes."""
    assert storage_classes.name_of(volume_type) == name
    chosen = storage_classes.choose([volume_type], ANY)
    assert chosen.classes == (storage_classes.StorageClass(name, volume_type, True),)
    assert not chosen.problems


def names(choice: storage_classes.Choice) -> list[str]:
    return [storage_class.name for storage_class in choice.classes]


def defaults(choice: storage_classes.Choice) -> list[str]:
    return [
        storage_class.name
        for storage_class in choice.classes
        if storage_class.is_default
    ]


@pytest.mark.parametrize(
    ("volume_type", "words"),
    [
        ("", "with a letter a-z or a digit"),
        ("Быстрый", "with a letter a-z or a digit"),
        (" -._ ", "with a letter a-z or a digit"),
        ("a..b", "DNS subdomain of at most 253 characters, not in"),
        ("a.-b", "DNS subdomain"),
        ("x" * 254, "DNS subdomain"),
    ],
)
def test_a_type_without_a_usable_name_is_told(volume_type: str, words: str) -> None:
    """The type is named, and the others get their classes all the same."""
    chosen = storage_classes.choose(["fast", volume_type], ANY)
    assert names(chosen) == ["fast"]
    (problem,) = chosen.problems
    assert problem.value == volume_type
    assert words in str(problem)


def test_types_that_make_one_name_get_no_class() -> None:
    """Both are told, each naming the other; nobody's volumes change their type."""
    chosen = storage_classes.choose(["SSD", "hdd", "ssd", "s_sd"], ANY)
    assert names(chosen) == ["hdd"]
    assert [problem.value for problem in chosen.problems] == ["SSD", "ssd", "s_sd"]
    assert '"ssd", "s_sd" results in the same StorageClass "ssd"' in str(
        chosen.problems[0]
    )


def test_who_holds_a_class_keeps_it() -> None:
    """A new type of the same name is told; the class in use stays as it is."""
    chosen = storage_classes.choose(["SSD", "ssd"], ANY, held={"ssd": "SSD"})
    assert chosen.classes == (storage_classes.StorageClass("ssd", "SSD", True),)
    assert [problem.value for problem in chosen.problems] == ["ssd"]
    gone = storage_classes.choose(["SSD", "ssd"], ANY, held={"ssd": "S-S-D"})
    assert gone.classes == ()


def test_a_type_given_twice_counts_once() -> None:
    """A list that repeats itself, as pages may do, makes no collision."""
    chosen = storage_classes.choose(["ssd", "ssd"], ANY)
    assert (names(chosen), chosen.problems) == (["ssd"], ())


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["ssd"], ["ssd-r1", "zz"]),
        (["ssd.*"], ["zz"]),
        (["sd", "z", "SSD R1"], ["ssd", "ssd-r1", "zz"]),
        (["ssd|zz"], ["ssd-r1"]),
        ([".*"], []),
    ],
)
def test_exclusion_matches_the_whole_class_name(
    exclude: list[str], left: list[str]
) -> None:
    """Anchored on both ends, against the name of the class; what it takes is told."""
    rules = storage_classes.read_rules(exclude)
    types = ["zz", "SSD R1", "SSD"]
    chosen = storage_classes.choose(types, rules)
    assert names(chosen) == left
    assert len(chosen.excluded) + len(left) == len(types)
    assert defaults(chosen) == left[:1]


def test_excluded_types_make_no_problem() -> None:
    """Collisions and empty names can be silenced."""
    rules = storage_classes.read_rules(["ssd", ""])
    chosen = storage_classes.choose(["SSD", "ssd", "Быстрый", "hdd"], rules)
    assert (names(chosen), chosen.problems) == (["hdd"], ())
    assert chosen.excluded == ("SSD", "ssd", "Быстрый")


def test_bad_expressions_are_told_all_at_once() -> None:
    """Each with its place, its text and what is wrong; none of Go's own syntax."""
    with pytest.raises(config.ConfigError) as caught:
        storage_classes.read_rules(["ok", "(", "[[:alpha:]]", r"\pL", "x**"])
    fields = [str(problem).split(": ")[0] for problem in caught.value.problems]
    assert fields == [f"storageClass.exclude[{index}]" for index in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("rules", "marked"),
    [
        (storage_classes.StorageClassRules(), ["a"]),
        (storage_classes.StorageClassRules(default="b"), ["b"]),
        (storage_classes.StorageClassRules(default="B"), []),
        (storage_classes.StorageClassRules(default="b", has_other_default=True), ["b"]),
        (storage_classes.StorageClassRules(has_other_default=True), []),
        (storage_classes.StorageClassRules(exclude=(re.compile("a"),)), ["b"]),
    ],
)
def test_one_class_at_most_is_the_default(
    rules: storage_classes.StorageClassRules, marked: list[str]
) -> None:
    """The one wished for, else the first; none where the wish names none."""
    assert defaults(storage_classes.choose(["b", "A", "c"], rules)) == marked


@hypothesis.given(
    strategies.lists(
        strategies.text(max_size=12)
        | strategies.text("aB-. _ж", max_size=6)
        | strategies.text("ab.", min_size=250, max_size=256)
    )
)
def test_every_type_has_a_valid_class_or_a_problem(types: list[str]) -> None:
    """Nothing is lost, no two share a name, and each name is one Kubernetes takes."""
    chosen = storage_classes.choose(types, ANY)
    subdomain = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    for name in names(chosen):
        assert re.fullmatch(subdomain, name), name
        assert len(name) <= 253
    assert names(chosen) == sorted(set(names(chosen)))
    served = [storage_class.volume_type for storage_class in chosen.classes]
    messages = [problem.value for problem in chosen.problems]
    assert sorted([*served, *map(str, messages)]) == sorted(set(types))
    assert len(defaults(chosen)) == bool(served)
