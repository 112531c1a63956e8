"""The StorageClasses of a cloud's volume types. Pure.

Rules: two types never share a class, and no type is dropped silently: a type without
a class is excluded by the user's settings, or is in `problems`.
"""

import collections
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from lib.process import config

NAME_MAX = 253
"""Characters. Source: Kubernetes, "Object Names and IDs", DNS subdomain names."""

_KEPT = re.compile(r"[^a-zA-Z0-9.-]")
_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)
_POSIX_CLASS = "[[:"


@dataclasses.dataclass(frozen=True, slots=True)
class StorageClass:
    """A desired class: its name, and the raw name of its volume type."""

    name: str
    volume_type: str
    is_default: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class StorageClassRules:
    """Rules of the user.

    exclude: classes whose whole name matches are excluded. default: the name of the
    default class, of the settings or of the cluster; without a class of that name
    there is no default, an empty name selects the first class. has_other_default: the
    cluster's default is a class that is not owned: an empty `default` selects none.
    """

    exclude: tuple[re.Pattern[str], ...] = ()
    default: str = ""
    has_other_default: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """The classes of the volume types.

    classes: sorted by name, at most one the default. excluded: raw names of the types
    that the user excludes, in the order of the types. problems: why other types have
    no class; their existing classes must not be changed.
    """

    classes: tuple[StorageClass, ...]
    excluded: tuple[str, ...] = ()
    problems: tuple[config.FieldProblem, ...] = ()


def read_rules(
    exclude: Sequence[str], default: str = "", has_other_default: bool = False
) -> StorageClassRules:
    """Validate and compile the user's rules.

    exclude: regular expressions, each anchored on both ends and matched against the
    class name, not against the name of the type.

    Raises:
        ConfigError: with every expression that can't be compiled.
    """
    problems: list[config.FieldProblem] = []
    compiled = [
        _compile(expression, index, problems)
        for index, expression in enumerate(exclude)
    ]
    config.require(problems)
    patterns = tuple(expression for expression in compiled if expression is not None)
    return StorageClassRules(patterns, default, has_other_default)


def _compile(
    text: str, index: int, problems: list[config.FieldProblem]
) -> re.Pattern[str] | None:
    field = f"storageClass.exclude[{index}]"
    if _POSIX_CLASS in text:
        # Go's syntax; Python reads it differently.
        expected = "a regular expression without [[:class:]], such as [a-z]"
        problems.append(config.FieldProblem(field, text, expected))
        return None
    try:
        return re.compile(text)
    except re.error as error:
        expected = f"a regular expression ({error})"
        problems.append(config.FieldProblem(field, text, expected))
        return None


def name_of(volume_type: str) -> str:
    """Return the class name for a volume type; it may be empty or invalid.

    Source: Deckhouse, cloud-provider-openstack, names of StorageClasses.
    """
    return _KEPT.sub("", volume_type.replace(" ", "-")).lower().strip("-.")


def is_excluded(name: str, rules: StorageClassRules) -> bool:
    """Report whether the user excludes a class of this name."""
    return any(pattern.fullmatch(name) for pattern in rules.exclude)


def is_name(text: str) -> bool:
    """Report whether an API server accepts this as the name of a StorageClass."""
    return len(text) <= NAME_MAX and _SUBDOMAIN.fullmatch(text) is not None


def choose(
    volume_types: Sequence[str],
    rules: StorageClassRules,
    held: Mapping[str, str] | None = None,
) -> Choice:
    """Return the desired classes.

    volume_types: raw names; repetitions are ignored. held: the owned classes, name to
    raw name of the type. Where several types result in one name, the type that holds
    the class keeps it, else no type gets it.
    """
    by_name: dict[str, list[str]] = collections.defaultdict(list)
    problems: list[config.FieldProblem] = []
    excluded: list[str] = []
    for volume_type in dict.fromkeys(volume_types):
        name = name_of(volume_type)
        if is_excluded(name, rules):
            excluded.append(volume_type)
        elif not is_name(name):
            problems.append(_unusable(volume_type, name))
        else:
            by_name[name].append(volume_type)
    chosen: dict[str, str] = {}
    for name, types in sorted(by_name.items()):
        owner = _owner(types, (held or {}).get(name))
        if owner is not None:
            chosen[name] = owner
        problems.extend(
            _taken(volume_type, name, types)
            for volume_type in types
            if volume_type != owner
        )
    default = _default(chosen, rules)
    classes = (StorageClass(n, t, n == default) for n, t in chosen.items())
    return Choice(tuple(classes), tuple(excluded), tuple(problems))


def _owner(types: Sequence[str], holder: str | None) -> str | None:
    if len(types) == 1:
        return types[0]
    return holder if holder in types else None


def _default(names: Iterable[str], rules: StorageClassRules) -> str | None:
    if rules.default or rules.has_other_default:
        return rules.default
    return next(iter(names), None)


def _unusable(volume_type: str, name: str) -> config.FieldProblem:
    if not name:
        expected = (
            "a name with a letter a-z or a digit, for the name of its StorageClass"
        )
    else:
        expected = (
            f"a name that results in a DNS subdomain of at most {NAME_MAX} characters,"
            f' not in "{_short(name)}"'
        )
    return config.FieldProblem("volume type", volume_type, expected)


def _taken(volume_type: str, name: str, types: Sequence[str]) -> config.FieldProblem:
    others = ", ".join(f'"{other}"' for other in types if other != volume_type)
    expected = (
        f'a unique name: {others} results in the same StorageClass "{name}";'
        " rename a type or exclude the name"
    )
    return config.FieldProblem("volume type", volume_type, expected)


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
