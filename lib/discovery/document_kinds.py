"""Sorts the documents of a cluster's configuration by kind. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence

from lib.discovery.findings import (
    Document,
    SourceFindings,
    is_document,
    name_of,
    text_of,
)
from lib.process import config

MODULE_CONFIG = "ModuleConfig"


@dataclasses.dataclass(frozen=True, slots=True)
class DocumentKinds:
    """The kinds that are read.

    configuration: that of the installer; a document of this kind, or in a hybrid
    cluster the ModuleConfig, is required. once: at most one document of each, the
    configuration included. more: any number. module: whose ModuleConfig is read.
    """

    configuration: str
    once: tuple[str, ...]
    more: tuple[str, ...]
    module: str


def sort(
    documents: Sequence[object], kinds: DocumentKinds, findings: SourceFindings
) -> tuple[Mapping[str, list[Document]], tuple[str, ...]]:
    """Sort by kind, and list the unused kinds."""
    by_kind: dict[str, list[Document]] = {}
    skipped: list[str] = []
    for number, document in enumerate(documents, start=1):
        kind = text_of(document, "kind") if is_document(document) else ""
        if not is_document(document) or not kind:
            expected = "an object with a kind, such as " + kinds.configuration
            findings.add(
                f"document {number}", [config.FieldProblem("", None, expected)]
            )
        elif kind not in (*kinds.once, *kinds.more) or _is_of_other(document, kinds):
            skipped.append(kind)
        else:
            by_kind.setdefault(kind, []).append(document)
    for kind in kinds.once:
        count = len(by_kind.get(kind, ()))
        if count > 1:
            expected = "one document of this kind"
            findings.add(
                kind, [config.FieldProblem("", f"{count} documents", expected)]
            )
    if kinds.configuration not in by_kind and MODULE_CONFIG not in by_kind:
        expected = f"a document of this kind, or in a hybrid cluster {MODULE_CONFIG}"
        findings.add(kinds.configuration, [config.not_set("", expected)])
    return by_kind, tuple(dict.fromkeys(skipped))


def _is_of_other(document: Document, kinds: DocumentKinds) -> bool:
    """Report whether it is the configuration of another module."""
    is_settings = text_of(document, "kind") == MODULE_CONFIG
    return is_settings and name_of(document) != kinds.module
