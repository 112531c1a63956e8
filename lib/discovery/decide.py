"""What each step of a cycle does about what it saw. Pure.

Rules: what is invalid or empty never takes the place of what is valid; nothing is
written that already holds; only StorageClasses with our mark are touched.
"""

import dataclasses
import datetime
import json
from collections.abc import Mapping

import msgspec

from lib.cloud.catalog import InstanceType
from lib.discovery import model, quantity, storage_classes
from lib.discovery.model import Action, StoredClass
from lib.process import decoding
from lib.reconcile.outcome import Outcome

YOUNG = datetime.timedelta(minutes=1)
"""A volume is made before its PersistentVolume is: this is how long that may take."""
LASTING = ("additionalNetworks", "additionalSecurityGroups")
"""Lists that may be empty, but do not become so while a cluster lives in the cloud."""


def decide(
    seen: model.Snapshot, settings: model.Settings, now: datetime.datetime
) -> Outcome[Action]:
    """Say what to do.

    Raises:
        CloudError, KubeError, Invalid: the step could not be observed.
    """
    match seen:
        case model.Failed(error=error):
            raise error
        case model.SeenConditions():
            return Outcome(_conditions(seen))
        case model.SeenInstanceTypes():
            return Outcome(_instance_types(seen))
        case model.SeenDocument():
            return Outcome(_document(seen))
        case model.SeenDisks():
            return Outcome(_disks(seen, now))
        case model.SeenClasses():
            return Outcome(_classes(seen, settings))


def _conditions(seen: model.SeenConditions) -> tuple[Action, ...]:
    actions: list[Action] = []
    unmet = frozenset((c.name, c.message) for c in seen.conditions if not c.is_ok)
    if unmet != seen.shown:
        actions.append(model.ShowConditions(unmet))
    if seen.conditions and seen.may_store:
        text = _told(seen)
        if seen.stored is None or _kept(seen.stored) != text:
            actions.append(model.StoreConditions(text, seen.stored))
    return tuple(actions)


def _told(seen: model.SeenConditions) -> str:
    return json.dumps(
        [{"name": c.name, "message": c.message, "ok": c.is_ok} for c in seen.conditions]
    )


def _kept(config_map: bytes) -> str:
    stored = decoding.decode(config_map, model.StoredConfigMap)
    return stored.data.get(model.CONDITIONS_KEY, "")


def catalog_items(offered: tuple[InstanceType, ...]) -> tuple[model.CatalogItem, ...]:
    """Give the items of the InstanceTypesCatalog, sorted by name.

    Source: deckhouse, go_lib/cloud-data: cpu, memory and rootDisk are quantities.
    """
    return tuple(
        model.CatalogItem(
            name=one.name,
            cpu=quantity.of_units(one.vcpus),
            memory=quantity.of_mib(one.memory_mib),
            root_disk=quantity.of_gib(one.root_disk_gib),
        )
        for one in sorted(offered, key=lambda one: one.name)
    )


def _instance_types(seen: model.SeenInstanceTypes) -> tuple[Action, ...]:
    if not seen.offered:
        return (model.Complain(("instance types: the cloud offers none",)),)
    items = catalog_items(seen.offered)
    if seen.stored is not None:
        try:
            stored = decoding.decode(seen.stored, model.StoredCatalog)
        except msgspec.ValidationError:
            stored = model.StoredCatalog()
        if stored.instance_types == items:
            return ()
    return (model.StoreCatalog(items, seen.stored),)


def _document(seen: model.SeenDocument) -> tuple[Action, ...]:
    if seen.problems:
        return (model.Complain(seen.problems),)
    stored = _published(seen.stored)
    wanted = decoding.decode(seen.document, dict[str, object])
    if stored == wanted:
        return ()
    emptied = [key for key in LASTING if not wanted.get(key) and stored.get(key)]
    if emptied:
        return (model.Complain(tuple(_doubt(key) for key in emptied)),)
    return (model.StoreDocument(seen.document, seen.stored),)


def _published(secret: bytes | None) -> Mapping[str, object]:
    """Give what the Secret says now; empty when that is nothing, or no JSON."""
    if secret is None:
        return {}
    data = decoding.decode(secret, model.StoredSecret).data
    try:
        return decoding.decode(data.get(model.DATA_KEY, b"{}"), dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _doubt(key: str) -> str:
    return (
        f"{key}: want at least 1 item: the cloud lists none any more, which is not"
        f" believed; if it is so, delete the Secret"
        f" {model.NAMESPACE}/{model.DATA_SECRET}"
    )


def orphans(
    seen: model.SeenDisks, now: datetime.datetime
) -> frozenset[tuple[str, str]]:
    """Give id and name of the volumes that no PersistentVolume knows."""
    names = {one.metadata.name for one in seen.persistent}
    handles = {one.handle for one in seen.persistent}
    return frozenset(
        (volume.id, volume.name)
        for volume in seen.volumes
        if volume.name not in names
        and volume.id not in handles
        and (volume.created is None or now - volume.created >= YOUNG)
    )


def _disks(seen: model.SeenDisks, now: datetime.datetime) -> tuple[Action, ...]:
    found = orphans(seen, now)
    return () if found == seen.shown else (model.ShowOrphans(found),)


def _classes(seen: model.SeenClasses, settings: model.Settings) -> tuple[Action, ...]:
    if not seen.offered:
        return (model.Complain(("volume types: the cloud offers none",)),)
    types = tuple(one.name for one in seen.offered)
    ours = {one.metadata.name: one for one in seen.stored if one.is_ours}
    choice, problems = _choice(seen, types, settings)
    spoken_for = {
        storage_classes.name_of(one) for one in types if one not in choice.excluded
    }
    unmark: list[Action] = []
    actions: list[Action] = []
    actions += [_delete(one) for name, one in ours.items() if name not in spoken_for]
    for wanted in choice.classes:
        there = ours.get(wanted.name)
        if there is None:
            actions.append(model.CreateClass(wanted))
        elif not _is_as_wanted(there, wanted, settings):
            actions += [_delete(there), model.CreateClass(wanted)]
        else:
            change = _change(there, wanted, settings)
            (unmark if there.is_default else actions).extend(change)
    complaint = (model.Complain(tuple(problems)),) if problems else ()
    # A mark goes before another comes: two default classes never stand side by side.
    return (*unmark, *actions, *complaint)


def _choice(
    seen: model.SeenClasses, types: tuple[str, ...], settings: model.Settings
) -> tuple[storage_classes.Choice, list[str]]:
    """Choose the classes that are to be ours, and say why others can't be.

    A name that somebody else's class has is his; so no default is chosen among those.
    """
    ours = {one.metadata.name: one for one in seen.stored if one.is_ours}
    held = {name: one.parameters.get("type", "") for name, one in ours.items()}
    rules = _rules(seen, settings)
    choice = storage_classes.choose(types, rules, held)
    problems = [str(problem) for problem in choice.problems]
    foreign = {one.metadata.name: one for one in seen.stored if not one.is_ours}
    taken = [one for one in choice.classes if one.name in foreign]
    for one in taken:
        problems += _foreign(foreign[one.name], one, settings)
    if taken:
        theirs = {one.volume_type for one in taken}
        rest = [one for one in types if one not in theirs]
        choice = storage_classes.choose(rest, rules, held)
    return choice, problems


def _rules(seen: model.SeenClasses, settings: model.Settings) -> storage_classes.Rules:
    """Give the user's rules; without a wish the default class stays the one it is."""
    if settings.rules.default:
        return settings.rules
    marked = sorted(one.metadata.name for one in seen.stored if one.is_default)
    ours = [one.metadata.name for one in seen.stored if one.is_ours and one.is_default]
    return dataclasses.replace(
        settings.rules,
        default=min(ours, default=""),
        has_other_default=bool(marked) and not ours,
    )


def _delete(there: StoredClass) -> model.DeleteClass:
    meta = there.metadata
    return model.DeleteClass(meta.name, meta.uid, meta.resource_version)


def _is_as_wanted(
    there: StoredClass,
    wanted: storage_classes.StorageClass,
    settings: model.Settings,
) -> bool:
    """Compare what can't be changed in a StorageClass."""
    return (
        there.provisioner == settings.provisioner
        and there.parameters == {"type": wanted.volume_type}
        and there.reclaim_policy == "Delete"
        and there.volume_binding_mode == "WaitForFirstConsumer"
    )


def _foreign(
    there: StoredClass,
    wanted: storage_classes.StorageClass,
    settings: model.Settings,
) -> list[str]:
    """Complain of a class that has the name and is not ours, unless it does as well."""
    serves = there.parameters.get("type") == wanted.volume_type
    if serves and there.provisioner == settings.provisioner:
        return []
    return [
        f"StorageClass {wanted.name!r}: want it free for volume type"
        f" {wanted.volume_type!r}: it is somebody else's; delete it or exclude the name"
    ]


def _change(
    there: StoredClass,
    wanted: storage_classes.StorageClass,
    settings: model.Settings,
) -> list[Action]:
    is_default: bool | None = None
    if wanted.is_default and not there.is_default:
        is_default = True
    elif there.is_default and not wanted.is_default and settings.rules.default:
        is_default = False
    if is_default is None and there.allow_volume_expansion:
        return []
    meta = there.metadata
    return [model.ChangeClass(meta.name, meta.resource_version, is_default)]
