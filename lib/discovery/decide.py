"""The actions of each step of a cycle, by its snapshot. Pure.

Rules: an invalid or empty reading never replaces a valid one; nothing is written that
is stored already; only StorageClasses with the ownership label are changed.
"""

import datetime
import json
from collections.abc import Mapping, Sequence

import msgspec

from lib.cloud.catalog import InstanceType
from lib.discovery import class_changes, model, quantity
from lib.discovery.model import Action
from lib.discovery.provider import Signal
from lib.kube import objects, volume_references
from lib.process import decoding
from lib.reconcile.outcome import Outcome


def decide(
    snapshot: model.Snapshot, settings: model.DiscoverySettings, now: datetime.datetime
) -> Outcome[Action]:
    """Return the changes of one step of the cycle, or why it fails."""
    match snapshot:
        case model.FailedStep(error=error):
            return Outcome(failure=error)
        case model.ObservedConditions():
            return Outcome(_conditions(snapshot))
        case model.ObservedInstanceTypes():
            return _instance_types(snapshot)
        case model.ObservedDocument():
            return _document(snapshot, settings)
        case model.ObservedDisks():
            return Outcome(_disks(snapshot, settings, now))
        case model.ObservedClasses():
            actions, problems = class_changes.decide(snapshot, settings)
            return Outcome(actions, failure=_invalid(problems))


def _invalid(problems: Sequence[str]) -> model.InvalidCatalog | None:
    """Return the failure that the user must correct; None without problems."""
    return model.InvalidCatalog("; ".join(problems)) if problems else None


def _conditions(snapshot: model.ObservedConditions) -> tuple[Action, ...]:
    actions: list[Action] = []
    unmet = frozenset((c.name, c.message) for c in snapshot.conditions if not c.is_ok)
    if unmet != snapshot.shown:
        actions.append(model.ShowConditions(unmet))
    if snapshot.conditions and snapshot.may_store:
        text = _conditions_text(snapshot)
        if snapshot.stored is None or _stored_text(snapshot.stored) != text:
            actions.append(model.StoreConditions(text, snapshot.stored))
    return tuple(actions)


def _conditions_text(snapshot: model.ObservedConditions) -> str:
    return json.dumps(
        [
            {"name": c.name, "message": c.message, "ok": c.is_ok}
            for c in snapshot.conditions
        ]
    )


def _stored_text(config_map: bytes) -> str:
    stored = decoding.decode(config_map, objects.ConfigMap)
    return (stored.data or {}).get(model.CONDITIONS_KEY, "")


def catalog_items(offered: tuple[InstanceType, ...]) -> tuple[model.CatalogItem, ...]:
    """Return the items of the InstanceTypesCatalog, sorted by name.

    Source: deckhouse, go_lib/cloud-data: cpu, memory and rootDisk are quantities.
    """
    return tuple(
        model.CatalogItem(
            name=instance_type.name,
            cpu=quantity.of_units(instance_type.vcpus),
            memory=quantity.of_mib(instance_type.memory_mib),
            root_disk=quantity.of_gib(instance_type.root_disk_gib),
        )
        for instance_type in sorted(
            offered, key=lambda instance_type: instance_type.name
        )
    )


def signals(
    snapshot: model.Snapshot, settings: model.DiscoverySettings
) -> tuple[tuple[Signal, bool], ...]:
    """Return the states of the cluster that a snapshot shows."""
    match snapshot:
        case model.ObservedDocument(is_configured=is_configured):
            return ((Signal.INSTALLER_CONFIGURATION, is_configured),)
        case model.ObservedClasses():
            drifted = class_changes.has_drifted(snapshot, settings.rules)
            return ((Signal.DEFAULT_CLASS_DRIFTED, drifted),)
    return ()


def _instance_types(snapshot: model.ObservedInstanceTypes) -> Outcome[Action]:
    if not snapshot.offered:
        return Outcome(failure=_invalid(["instance types: the cloud offers none"]))
    items = catalog_items(snapshot.offered)
    if snapshot.stored is not None:
        try:
            stored = decoding.decode(snapshot.stored, model.StoredCatalog)
        except msgspec.ValidationError:
            stored = model.StoredCatalog()
        if stored.instance_types == items:
            return Outcome()
    return Outcome((model.StoreCatalog(items, snapshot.stored),))


def _document(
    snapshot: model.ObservedDocument, settings: model.DiscoverySettings
) -> Outcome[Action]:
    if snapshot.problems:
        return Outcome(failure=_invalid(snapshot.problems))
    stored = _published(snapshot.stored)
    desired = decoding.decode(snapshot.document, dict[str, object])
    if stored == desired:
        return Outcome()
    lasting = settings.provider.lasting
    emptied = [key for key in lasting if not desired.get(key) and stored.get(key)]
    if emptied:
        return Outcome(
            failure=_invalid([_implausible(key, settings) for key in emptied])
        )
    return Outcome((model.StoreDocument(snapshot.document, snapshot.stored),))


def _published(secret: bytes | None) -> Mapping[str, object]:
    """Return the document in the Secret; empty without one, or without JSON."""
    if secret is None:
        return {}
    data = decoding.decode(secret, model.StoredSecret).data
    try:
        return decoding.decode(data.get(model.DATA_KEY, b"{}"), dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _implausible(key: str, settings: model.DiscoverySettings) -> str:
    return (
        f"{key}: implausible: the cloud does not list any item any more; the published"
        f" list is kept. If the list is empty on purpose, delete the Secret"
        f" {model.NAMESPACE}/{settings.provider.data_secret}"
    )


def orphans(
    snapshot: model.ObservedDisks, min_age: datetime.timedelta, now: datetime.datetime
) -> frozenset[tuple[str, str]]:
    """Return ID and name of the volumes to which no object of the cluster refers."""
    referenced = volume_references.references(snapshot.persistent, snapshot.claims)
    return frozenset(
        (volume.id, volume.name)
        for volume in snapshot.volumes
        if volume_references.is_orphan(volume, referenced)
        and not volume_references.is_young(volume.created, min_age, now)
    )


def _disks(
    snapshot: model.ObservedDisks,
    settings: model.DiscoverySettings,
    now: datetime.datetime,
) -> tuple[Action, ...]:
    orphaned = orphans(snapshot, settings.orphan_min_age, now)
    return () if orphaned == snapshot.shown else (model.ShowOrphans(orphaned),)
