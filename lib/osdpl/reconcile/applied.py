"""What release Secrets and status record of the applied OpenStack. Pure.

Rules: the release Secrets are helm's record; the OpenStackDeploymentStatus only adds
to it. A status that was deleted loosens no rule: what it alone records is then
unknown, and what requires it is refused until it has been written again.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lib.helm import model as helm
from lib.osdpl.api import annotations, model
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import conditions, upgrade
from lib.osdpl.reconcile.conditions import Phase
from lib.osdpl.rules import rule
from lib.osdpl.values import graph
from lib.process.config import FieldProblem

Revisions = Mapping[str, helm.Revision]
"""Newest revision by release."""
NOT_RECORDED = "NOT_RECORDED"
"""State of an installed OpenStack whose OpenStackDeploymentStatus does not exist."""


def versions(revisions: Revisions) -> frozenset[str]:
    """Return the OpenStack versions that release Secrets carry."""
    labels = (revision.labels for revision in revisions.values())
    texts = (own.get(upgrade.VERSION_LABEL, "") for own in labels)
    return frozenset(text for text in texts if text in rule.VERSIONS)


def newest(candidates: Iterable[str]) -> str:
    """Return the newest OpenStack version; empty if there is none."""
    known = [version for version in candidates if version in rule.VERSIONS]
    return max(known, key=rule.VERSIONS.index, default="")


def oldest(candidates: Iterable[str]) -> str:
    """Return the oldest OpenStack version; empty: one of them is unknown."""
    known = list(candidates)
    if not known or any(version not in rule.VERSIONS for version in known):
        return ""
    return min(known, key=rule.VERSIONS.index)


def endless(
    change: rule.Change,
    rendered: model.Rendered,
    status: Document | None,
    revisions: Revisions,
) -> Iterator[FieldProblem]:
    """Yield the services that keep an upgrade which has not begun from its end.

    Those that cannot be rendered and are installed, or come with the upgrade. One that
    was refused before, and has no release, changes nothing.
    """
    if not change.is_upgrade:
        return
    installed = {graph.SERVICE_OF.get(name) for name in revisions}
    recorded = ((status or {}).get("status") or {}).get("services") or {}
    for refusal in rendered.refusals:
        if refusal.service in installed or refusal.service not in recorded:
            problems = "; ".join(map(str, refusal.problems))
            yield rule.problem(
                "openstack_version",
                change.spec["openstack_version"],
                f"{change.version} while the service {refusal.service} cannot be"
                f" rendered ({refusal.reason.value}: {problems})",
            )


def change_of(
    document: Document, status: Document | None, revisions: Revisions
) -> rule.Change:
    """Return the input of the rules without the spec.

    status: the OpenStackDeploymentStatus, with the applied version and its progress.
    """
    applied = _own(status)
    installed = versions(revisions)
    recorded_version = str(applied.get("openstack_version") or "")
    return rule.Change(
        spec={},
        version=newest({*installed, recorded_version}),
        state=_state(status),
        services=frozenset(((status or {}).get("status") or {}).get("services") or {}),
        recorded=applied.get("fields") or {},
        is_upgrading=bool(applied.get("upgrade")) or len(installed) > 1,
        forced=annotations.names(document, annotations.FORCE),
    )


def deletion_of(
    document: Document, status: Document | None, revisions: Revisions
) -> rule.Change:
    """Return the input of the rules for a deletion.

    Without a status the conditions of the object count; without both an installed
    OpenStack is not known to be applied.
    """
    change = change_of(document, status, revisions)
    state = change.state or conditions.unfinished_state(document)
    if not state and change.version and not conditions.is_deletable(document):
        state = NOT_RECORDED
    return dataclasses.replace(change, state=state, is_deletion=True)


def _state(status: Document | None) -> str:
    """Return the state of what can be rendered: refused services block nothing."""
    own = str(_own(status).get("state") or "")
    services = ((status or {}).get("status") or {}).get("services") or {}
    waiting = (Phase.WAITING.value, Phase.REFUSED.value)
    if own not in waiting:
        return own
    is_refused = all(
        service.get("state") == Phase.APPLIED or _is_refused(service)
        for service in services.values()
    )
    return Phase.APPLIED.value if services and is_refused else own


def _is_refused(service: Document) -> bool:
    """Report whether a service cannot be rendered, by its status."""
    reason = str(service.get("cause") or "").partition(":")[0]
    return service.get("state") == Phase.REFUSED or reason in tuple(model.Reason)


def _own(status: Document | None) -> Mapping[str, Any]:
    """Return the part of the whole in an OpenStackDeploymentStatus."""
    own = ((status or {}).get("status") or {}).get("osdpl") or {}
    return own if isinstance(own, Mapping) else {}
