"""Rules for the whole: versions, upgrades, schedules, status, deletion."""

from collections.abc import Iterator, Mapping
from typing import Any

from lib.osdpl.api import confidential, hashing, settings
from lib.osdpl.api.annotations import FORCE, FORCE_CHANGE, FORCE_DELETION
from lib.osdpl.rules import cron
from lib.osdpl.rules.rule import (
    SLURP,
    VERSIONS,
    Change,
    Rule,
    at,
    below,
    enabled_since,
    problem,
    rejected,
    service_since,
    service_until,
)
from lib.process.config import FieldProblem, stated

APPLIED = "APPLIED"
HASH_LENGTH = 16
_NO_CHANGES = ("openstack_version", "draft")
CLEANED = "barbican masakari nova cinder glance heat aodh manila horizon".split()


def _released(change: Change) -> Iterator[FieldProblem]:
    if change.spec["openstack_version"] == "master":
        yield problem("openstack_version", "master", "a released version")


def _single(change: Change) -> Iterator[FieldProblem]:
    if change.others:
        text = f"only one OpenStackDeployment per cluster; {change.others[0]} is older"
        yield stated("metadata.name", f"not supported: {text}")


def _no_downgrade(change: Change) -> Iterator[FieldProblem]:
    if change.is_upgrade and _distance(change) < 0:
        yield _version(change, f"{change.version} or later: there is no downgrade")


def _distance(change: Change) -> int:
    after = str(change.spec["openstack_version"])
    return VERSIONS.index(after) - VERSIONS.index(change.version)


def _one_version(change: Change) -> Iterator[FieldProblem]:
    is_slurp = change.spec["openstack_version"] in SLURP[1:]
    if change.is_upgrade and not is_slurp and _distance(change) > 1:
        index = VERSIONS.index(change.version) + 1
        yield _version(change, f"{VERSIONS[index]}: one version after the other")


def _slurp_distance(change: Change) -> Iterator[FieldProblem]:
    target = str(change.spec["openstack_version"])
    if not change.is_upgrade or target not in SLURP[1:]:
        return
    earlier = SLURP[SLURP.index(target) - 1]
    if VERSIONS.index(change.version) < VERSIONS.index(earlier):
        yield _version(change, f"{earlier} first: upgrades skip one version at most")


def _version(change: Change, expected: str) -> FieldProblem:
    return problem("openstack_version", change.spec["openstack_version"], expected)


def _alone(change: Change) -> Iterator[FieldProblem]:
    """Yield the fields that change together with the version."""
    if not change.is_upgrade:
        return
    for name in _changed(change, change.before):
        if name != "features.services":
            text = "must not be changed together with spec.openstack_version"
            yield rejected(name, text)


def _not_while_upgrading(change: Change) -> Iterator[FieldProblem]:
    """Yield the fields that change before an upgrade has ended."""
    if not change.is_upgrading or FORCE_CHANGE in change.forced:
        return
    # What was applied counts: a change that was refused can be reverted.
    before = change.before if not change.recorded else None
    for name in _changed(change, before):
        if name == "features.services" and _is_less(change):
            continue
        text = (
            "must not be changed before the upgrade has ended; revert the change, or"
            f" set the annotation {FORCE}: {FORCE_CHANGE}"
        )
        yield rejected(name, text)


def _is_less(change: Change) -> bool:
    """Report whether services are only removed again."""
    services = frozenset(at(change.spec, "features.services") or ())
    return bool(change.services) and services < change.services


def _changed(change: Change, before: Mapping[str, Any] | None) -> list[str]:
    """Return the fields that differ from before, without the OpenStack version.

    before: the effective spec; None: by the hashes of the one that was applied last.
    """
    if before is not None:
        new, old = fields(change.spec), fields(before)
    elif change.recorded:
        new, old = dict(hashes(change.written)), dict(change.recorded)
    else:
        return []
    return sorted(field for field in {*new, *old} if new.get(field) != old.get(field))


def fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec by its fields, those of features apart.

    Without the OpenStack version, and without draft, which stops all changes.
    """
    flat = {key: spec[key] for key in spec if key not in _NO_CHANGES}
    features = dict(flat.pop("features", {}))
    return {**flat, **{f"features.{key}": value for key, value in features.items()}}


def hashes(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the hash of each field of a spec, to recognise a change of it later.

    It is shown in the status: values that may be secrets are omitted.
    """
    hashed = fields(confidential.masked(dict(spec)))
    return {name: hashing.digest(hashed[name])[:HASH_LENGTH] for name in sorted(hashed)}


def _no_pinned_service_images(change: Change) -> Iterator[FieldProblem]:
    if not change.is_upgrade:
        return
    for service, charts in below(change.spec, "services").items():
        for chart, overrides in charts.items():
            path = f"services.{service}.{chart}.values.images.tags"
            if at(overrides, "values.images.tags"):
                yield rejected(path, "must not be set during an upgrade")


def _no_pinned_common_images(change: Change) -> Iterator[FieldProblem]:
    if not change.is_upgrade:
        return
    for group in below(change.spec, "common"):
        path = f"common.{group}.values.images.tags"
        if at(change.spec, path):
            yield rejected(path, "must not be set during an upgrade")


def _only_when_applied(change: Change) -> Iterator[FieldProblem]:
    if change.is_upgrade and change.state != APPLIED:
        expected = f"{change.version} until all services are {APPLIED}"
        yield _version(change, expected)


def _no_baremetal_with_tf(change: Change) -> Iterator[FieldProblem]:
    if change.spec["preset"] == "compute-tf":
        text = '"baremetal": not supported with the preset compute-tf'
        yield rejected("features.services", text)


def plain_key(spec: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the problem of a private key with a password; it is not shown."""
    path = "features.ssl.public_endpoints.api_key"
    key = at(spec, path)
    if isinstance(key, str) and "ENCRYPTED" in key:
        yield FieldProblem(
            f"spec.{path}", key, "a key without a password", is_secret=True
        )


def _plain_key(change: Change) -> Iterator[FieldProblem]:
    yield from plain_key(change.spec)


def _ingress(change: Change) -> Iterator[FieldProblem]:
    path = "migration.ingress.state"
    state = at(change.spec, path)
    if state not in (None, "absent", "present"):
        yield problem(path, state, "absent or present")


def _schedule(path: str) -> Rule:
    def find(change: Change) -> Iterator[FieldProblem]:
        text = at(change.spec, path)
        if text is not None and not cron.is_valid(str(text)):
            expected = "a schedule of a CronJob: 5 fields, or such as @daily"
            yield problem(path, text, expected)

    return Rule(f"{path} is a schedule", "", find)


def _label(change: Change) -> Iterator[FieldProblem]:
    for label in below(change.spec, "nodes"):
        key, separator, value = label.partition("::")
        if not (key and separator and value) or "::" in value:
            yield problem("nodes", label, "<label>::<value>, such as rack::a")


def _timeouts(change: Change) -> Iterator[FieldProblem]:
    yield from settings.problems(change.spec)


def deletion(change: Change) -> Iterator[FieldProblem]:
    """Yield why an OpenStackDeployment must not be deleted now."""
    if not change.is_deletion or FORCE_DELETION in change.forced:
        return
    annotation = f"the annotation {FORCE}: {FORCE_DELETION}"
    if change.is_by_definition:
        text = (
            "not allowed: the CustomResourceDefinition is being deleted, which must not"
            f" uninstall OpenStack; {annotation} uninstalls it nevertheless"
        )
        yield stated("metadata.deletionTimestamp", text)
    elif change.state not in ("", APPLIED):
        text = (
            f"not allowed in the state {change.state}: requires {APPLIED}, or"
            f" {annotation}"
        )
        yield stated("metadata.deletionTimestamp", text)


def _rotations(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rotation number of each group, by its path."""
    wrong = {}
    for kind in ("credentials", "certificates"):
        for path, node in _groups(below(status, kind), f"status.{kind}"):
            wrong[path] = node["rotation_id"]
    return wrong


def _groups(tree: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, node in tree.items():
        if isinstance(node, Mapping):
            if "rotation_id" in node:
                yield f"{path}.{name}.rotation_id", node
            yield from _groups(node, f"{path}.{name}")


def _rotation(name: str, expected: str, is_wrong: Any) -> Rule:
    """Return a rule for a rotation number; is_wrong: of the old and the new one."""

    def find(change: Change) -> Iterator[FieldProblem]:
        before, after = _rotations(change.status_before), _rotations(change.status)
        for path in sorted({*before, *after}):
            old, new = before.get(path), after.get(path)
            if old != new and is_wrong(change, old, new):
                yield FieldProblem(path, None if new is None else str(new), expected)

    return Rule(name, "", find)


DELETION: tuple[Rule, ...] = (Rule("deletion: applied before", "", deletion),)
"""Rules for the deletion of an OpenStackDeployment."""
STATUS: tuple[Rule, ...] = (
    _rotation(
        "rotation: applied before",
        f"unchanged before the state {APPLIED}",
        lambda change, old, new: change.state != APPLIED,
    ),
    _rotation(
        "rotation: no group removed",
        "a number: a group cannot be removed",
        lambda change, old, new: new is None,
    ),
    _rotation(
        "rotation: a positive number",
        "a number from 1 on",
        lambda change, old, new: new is not None and new <= 0,
    ),
    _rotation(
        "rotation: never less",
        "greater than the previous number",
        lambda change, old, new: None not in (old, new) and 0 < new < old,
    ),
    _rotation(
        "rotation: one more",
        "the previous number plus one",
        lambda change, old, new: new is not None and new > (old or 0) + 1,
    ),
)
"""Rules for its status."""
RULES: tuple[Rule, ...] = (
    Rule("openstack: a released version", "", _released),
    Rule("openstack: one per cluster", "", _single),
    Rule("openstack: no downgrade", "", _no_downgrade),
    Rule("openstack: one version at a time", "", _one_version),
    Rule("openstack: SLURP distance", "", _slurp_distance),
    Rule("openstack: no other change", "", _alone),
    Rule("openstack: no change during an upgrade", "", _not_while_upgrading),
    Rule("openstack: no pinned images of services", "", _no_pinned_service_images),
    Rule("openstack: no pinned images in common", "", _no_pinned_common_images),
    Rule("openstack: applied before an upgrade", "", _only_when_applied),
    service_since("instance-ha", "victoria"),
    service_until("metric", "flamingo"),
    service_since("metric-storage", "gazpacho"),
    Rule("baremetal without compute-tf", "baremetal", _no_baremetal_with_tf),
    service_until("event", "xena"),
    service_since("shared-file-system", "yoga"),
    Rule("ssl: a key without a password", "", _plain_key),
    enabled_since("features.policies.strict_admin.enabled", "yoga"),
    *(_schedule(f"features.database.cleanup.{name}.schedule") for name in CLEANED),
    _schedule("features.database.backup.schedule_time"),
    Rule("migration: state of the ingress", "", _ingress),
    Rule("nodes: label and value", "", _label),
    Rule("timeouts: seconds", "", _timeouts),
    *DELETION,
    *STATUS,
)
