"""Changes of the StorageClasses. Pure.

Rules: only classes with our label are changed; a class is deleted when its volume type
was not found by its ID, was renamed, or when the name is excluded, never because one
list lacks the type; the default class stays the default unless the user names another.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud.catalog import StorageType
from lib.discovery import model, storage_classes
from lib.discovery.model import Action, MissingType, ObservedClasses, StoredClass

_FLAG = "--default-storage-class"


@dataclasses.dataclass(frozen=True, slots=True)
class _Default:
    """The desired default class.

    name: empty for the first one. is_explicit: the user's setting names it. is_other: a
    class that is not owned. is_lost: it was the default, and does not exist any more.
    """

    name: str
    is_explicit: bool = False
    is_other: bool = False
    is_lost: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """The desired classes. recorded: the default's name; empty: unchanged."""

    snapshot: ObservedClasses
    settings: model.DiscoverySettings
    default: _Default
    choice: storage_classes.Choice
    recorded: str

    @property
    def owned(self) -> Mapping[str, StoredClass]:
        """The stored classes with our label, by name."""
        return _owned(self.snapshot)

    def offered(self, desired: storage_classes.StorageClass) -> StorageType:
        """Return the type of a desired class; desired classes follow from the list."""
        return next(
            offered_type
            for offered_type in self.snapshot.offered
            if offered_type.name == desired.volume_type
        )

    def is_obsolete(self, stored: StoredClass) -> bool:
        """Report whether the volume type of a class was renamed or deleted."""
        if stored.is_listed(self.snapshot.offered):
            return True  # under another name: it was renamed
        return self.snapshot.missing.get(stored.metadata.name) is MissingType.ABSENT


def decide(
    snapshot: ObservedClasses, settings: model.DiscoverySettings
) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """Return the changes, and the problems that the user must correct.

    Each prefix of the changes keeps the default's name: the desired default class is
    deleted last, when every other class records its name, or the Secret of the
    discovery data when no other class exists. Where the user names another default,
    the annotation of the old default is removed first: there are never two defaults.
    """
    if not snapshot.offered:
        return (), ("volume types: the cloud offers none",)
    default = _default(snapshot, settings.rules)
    choice, problems = _choose(snapshot, settings, default)
    plan = _Plan(
        snapshot, settings, default, choice, _recorded(snapshot, default, choice)
    )
    unmark, additions, removals = _changes(plan)
    if _needs_record(plan, (*additions, *removals)):
        if snapshot.secret is None:
            problems.append(_postponed(default.name, settings))
            removals = [a for a in removals if _class_of(a) != default.name]
        elif snapshot.recorded != default.name:
            additions.append(model.RecordDefault(default.name, snapshot.secret))
    elif snapshot.recorded and snapshot.secret is not None and _is_settled(plan):
        removals.append(model.RecordDefault("", snapshot.secret))
    problems += _missing(plan)
    if default.is_lost:
        problems.append(_lost(default.name))
    if default.is_explicit:
        return (*unmark, *removals, *additions), tuple(problems)
    return (*unmark, *additions, *removals), tuple(problems)


def _changes(plan: _Plan) -> tuple[list[Action], list[Action], list[Action]]:
    """Return removals of the default annotation, other changes, and deletions."""
    unmark: list[Action] = []
    additions: list[Action] = []
    removals: list[Action] = [
        _delete(stored_class) for stored_class in _deletable(plan)
    ]
    last: list[Action] = []
    for desired in plan.choice.classes:
        stored = plan.owned.get(desired.name)
        offered = plan.offered(desired)
        creation = model.CreateClass(desired, offered, plan.recorded)
        if stored is None:
            additions.append(creation)
        elif _is_as_desired(stored, offered, plan.settings):
            change = _change(stored, desired, plan)
            (unmark if stored.is_default else additions).extend(change)
        elif stored.volume_type == desired.volume_type or plan.is_obsolete(stored):
            (last if desired.is_default else removals).extend(
                (_delete(stored), creation)
            )
        else:
            additions += _record(stored, plan)
    chosen = {storage_class.name for storage_class in plan.choice.classes}
    deleted = {
        removal.name for removal in removals if isinstance(removal, model.DeleteClass)
    }
    for name, stored in plan.owned.items():
        if name not in chosen | deleted:
            additions += _record(stored, plan)
    return unmark, additions, [*removals, *last]


def _needs_record(plan: _Plan, actions: Sequence[Action]) -> bool:
    """Report whether the default class is recreated while no other one is owned."""
    name = plan.default.name
    deleted = {_class_of(a) for a in actions if isinstance(a, model.DeleteClass)}
    created = {_class_of(a) for a in actions if isinstance(a, model.CreateClass)}
    others = (plan.owned.keys() - deleted | created) - {name}
    is_recreated = name in deleted & created
    return is_recreated and not plan.default.is_explicit and not others


def _is_settled(plan: _Plan) -> bool:
    """Report whether the cluster has a default class, or the user names one."""
    is_marked = any(stored_class.is_default for stored_class in plan.snapshot.stored)
    return is_marked or plan.default.is_explicit


def _class_of(action: Action) -> str:
    """Return the name of the class that an action creates or deletes."""
    match action:
        case model.CreateClass(desired=desired):
            return desired.name
        case model.DeleteClass(name=name):
            return name
    return ""


def _postponed(name: str, settings: model.DiscoverySettings) -> str:
    where = f"{model.NAMESPACE}/{settings.provider.data_secret}"
    return (
        f'default StorageClass "{name}": not recreated: Secret {where}, which records'
        " its name in the meantime, does not exist yet"
    )


def _deletable(plan: _Plan) -> Iterator[StoredClass]:
    """Yield the owned classes that are excluded, or without a volume type.

    A name that results from a type in the list is kept, also when it is in conflict.
    """
    rules = plan.settings.rules
    excluded = set(plan.choice.excluded)
    used = {
        storage_classes.name_of(volume_type.name)
        for volume_type in plan.snapshot.offered
        if volume_type.name not in excluded
    }
    for name, stored in plan.owned.items():
        if (
            storage_classes.is_excluded(name, rules)
            or name not in used
            and plan.is_obsolete(stored)
        ):
            yield stored


def _missing(plan: _Plan) -> list[str]:
    """Return a problem for each class that is kept although its type is not listed."""
    problems = []
    for name, missing in plan.snapshot.missing.items():
        stored = plan.owned[name]
        if missing in (MissingType.EXISTS, MissingType.UNKNOWN):
            problems.append(
                f'StorageClass "{name}": volume type "{stored.volume_type}":'
                f" {missing.value}; the class is kept. Delete it if it is not needed"
            )
    return problems


def _lost(name: str) -> str:
    return (
        f'default StorageClass "{name}": not found: no other class is made the default;'
        f" set {_FLAG}, or annotate a class with {model.DEFAULT_CLASS}=true"
    )


def _owned(snapshot: ObservedClasses) -> Mapping[str, StoredClass]:
    return {
        stored_class.metadata.name: stored_class
        for stored_class in snapshot.stored
        if stored_class.is_owned
    }


def has_drifted(
    snapshot: ObservedClasses, rules: storage_classes.StorageClassRules
) -> bool:
    """Report whether the cloud's default is another class than ours in the cluster."""
    current, offered = _default(snapshot, rules), _of_cloud(snapshot, rules)
    if current.is_explicit or current.is_other or not offered:
        return False
    return current.name != offered


def _default(
    snapshot: ObservedClasses, rules: storage_classes.StorageClassRules
) -> _Default:
    """Return the default: the user's, the present, the recorded, or the cloud's."""
    if rules.default:
        return _Default(rules.default, is_explicit=True)
    marked = sorted(
        stored_class.metadata.name
        for stored_class in snapshot.stored
        if stored_class.is_default
    )
    owned = _owned(snapshot)
    for name in marked:
        if name in owned:
            return _Default(name)
    if marked:
        return _Default(marked[0], is_other=True)
    recorded = sorted(
        {stored_class.default_choice for stored_class in owned.values()} - {""}
    )
    recorded += [snapshot.recorded] if snapshot.recorded else []
    if not recorded:
        return _Default(_of_cloud(snapshot, rules))
    name = recorded[0]
    existing = {
        storage_classes.name_of(stored_class.name) for stored_class in snapshot.offered
    }
    existing |= {stored_class.metadata.name for stored_class in snapshot.stored}
    is_excluded = storage_classes.is_excluded(name, rules)
    return _Default(name, is_lost=is_excluded or name not in existing)


def _of_cloud(
    snapshot: ObservedClasses, rules: storage_classes.StorageClassRules
) -> str:
    """Return the name of the class of the cloud's default type; empty without one."""
    names = (
        storage_classes.name_of(offered_type.name)
        for offered_type in snapshot.offered
        if offered_type.is_default
    )
    is_excluded = storage_classes.is_excluded
    return next((name for name in names if not is_excluded(name, rules)), "")


def _recorded(
    snapshot: ObservedClasses, default: _Default, choice: storage_classes.Choice
) -> str:
    """Return the name to record. A setting that names no class is not recorded."""
    names = {stored_class.metadata.name for stored_class in snapshot.stored}
    names |= {storage_class.name for storage_class in choice.classes}
    if default.is_explicit:
        return default.name if default.name in names else ""
    first = (
        storage_class.name
        for storage_class in choice.classes
        if storage_class.is_default
    )
    return default.name or next(first, "")


def _choose(
    snapshot: ObservedClasses, settings: model.DiscoverySettings, default: _Default
) -> tuple[storage_classes.Choice, list[str]]:
    """Choose the desired classes, and report why others can't be created.

    A class of the same name that is not owned is not changed, and never the default.
    """
    types = tuple(offered_type.name for offered_type in snapshot.offered)
    held = {
        name: stored_class.volume_type
        for name, stored_class in _owned(snapshot).items()
    }
    rules = dataclasses.replace(
        settings.rules,
        default="" if default.is_other else default.name,
        has_other_default=default.is_other,
    )
    choice = storage_classes.choose(types, rules, held)
    problems = [str(problem) for problem in choice.problems]
    others = {
        stored_class.metadata.name: stored_class
        for stored_class in snapshot.stored
        if not stored_class.is_owned
    }
    taken = [
        storage_class
        for storage_class in choice.classes
        if storage_class.name in others
    ]
    for conflicting in taken:
        problems += _conflict(others[conflicting.name], conflicting, settings)
    if taken:
        taken_types = {storage_class.volume_type for storage_class in taken}
        rest = [volume_type for volume_type in types if volume_type not in taken_types]
        choice = storage_classes.choose(rest, rules, held)
    return choice, problems


def _conflict(
    stored: StoredClass,
    desired: storage_classes.StorageClass,
    settings: model.DiscoverySettings,
) -> list[str]:
    """Report a class that has the name and is not owned, unless it is equivalent."""
    serves = stored.volume_type == desired.volume_type
    if serves and stored.provisioner == settings.provider.provisioner:
        return []
    return [
        f'StorageClass "{desired.name}": conflict: the name is needed for volume type'
        f' "{desired.volume_type}", and the class is not owned by'
        " cloud-data-discoverer; delete it or exclude the name"
    ]


def _delete(stored: StoredClass) -> model.DeleteClass:
    meta = stored.metadata
    return model.DeleteClass(meta.name, meta.uid, meta.resource_version)


def _is_as_desired(
    stored: StoredClass, desired: StorageType, settings: model.DiscoverySettings
) -> bool:
    """Compare the immutable fields of a StorageClass."""
    return (
        stored.provisioner == settings.provider.provisioner
        and stored.parameters == settings.provider.class_parameters(desired.name)
        and stored.reclaim_policy == desired.reclaim_policy
        and stored.volume_binding_mode == "WaitForFirstConsumer"
    )


def _change(
    stored: StoredClass, desired: storage_classes.StorageClass, plan: _Plan
) -> list[Action]:
    is_default: bool | None = None
    if desired.is_default and not stored.is_default:
        is_default = True
    elif stored.is_default and not desired.is_default and plan.default.is_explicit:
        is_default = False
    offered = plan.offered(desired)
    new_id = offered.id if offered.id != stored.type_id else ""
    choice = plan.recorded if plan.recorded != stored.default_choice else ""
    if (
        is_default is None
        and not new_id
        and not choice
        and stored.allow_volume_expansion == offered.is_expandable
    ):
        return []
    meta = stored.metadata
    change = model.ChangeClass(
        meta.name,
        meta.resource_version,
        is_default,
        new_id,
        choice,
        offered.is_expandable,
    )
    return [change]


def _record(stored: StoredClass, plan: _Plan) -> list[Action]:
    """Record the default's name in a class that is kept as it is."""
    if not plan.recorded or plan.recorded == stored.default_choice:
        return []
    meta = stored.metadata
    change = model.ChangeClass(
        meta.name,
        meta.resource_version,
        None,
        choice=plan.recorded,
        is_expandable=stored.allow_volume_expansion,
    )
    return [change]
