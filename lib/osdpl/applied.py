"""What release Secrets and status record of the applied OpenStack. Pure.

Rules: the release Secrets are helm's record; the OpenStackDeploymentStatus only adds
to it. A status that was deleted loosens no rule: what it alone records is then
unknown, and what requires it is refused until it has been written again.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from lib.helm import model as helm
from lib.osdpl import annotations, conditions, upgrade
from lib.osdpl.rules import rule
from lib.osdpl.snapshot import Document

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
    """Return the newest OpenStack version; empty: there is none."""
    known = [version for version in candidates if version in rule.VERSIONS]
    return max(known, key=rule.VERSIONS.index, default="")


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
        state=str(applied.get("state") or ""),
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


def _own(status: Document | None) -> Mapping[str, Any]:
    """Return the part of the whole in an OpenStackDeploymentStatus."""
    own = ((status or {}).get("status") or {}).get("osdpl") or {}
    return own if isinstance(own, Mapping) else {}
