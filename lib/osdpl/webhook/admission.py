"""Judges an AdmissionReview of an OpenStackDeployment by the table of rules. Pure.

Rules: what does not change the spec is admitted, also when the spec is invalid: an
administrator must be able to annotate, and our finalizer to be removed. The same rules
are applied by each reconciliation, so that nothing depends on the webhook.

Source: Kubernetes admission.k8s.io/v1, AdmissionReview; which requests are judged by
which rules: the reference's admission (rockoon/admission), rejections have code 400.
"""

import dataclasses
import enum
import http
from collections.abc import Mapping
from typing import Any

import msgspec

from lib.osdpl.api import spec
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import applied
from lib.osdpl.rules import rule, table
from lib.osdpl.values import layers
from lib.process import config, decoding

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
MESSAGE_MAX = 4000
"""Characters of a rejection; the API server shows all of them in one line."""


class Operation(enum.StrEnum):
    """Operation of a request, as far as rules differ."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    STATUS = "STATUS"
    """An update of the status."""
    OTHER = "OTHER"


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """The request of an AdmissionReview, as far as it is judged."""

    uid: str
    operation: str = ""
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None

    @property
    def kind(self) -> Operation:
        """Return what is asked for."""
        if self.sub_resource == "status" and self.operation == "UPDATE":
            return Operation.STATUS
        if self.sub_resource or self.operation not in ("CREATE", "UPDATE", "DELETE"):
            return Operation.OTHER
        return Operation(self.operation)

    @property
    def key(self) -> str:
        """Return "namespace/name" of the object."""
        return f"{self.namespace}/{self.name or _metadata(self.object).get('name')}"


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the cluster.

    status: the OpenStackDeploymentStatus; None if there is none. others: keys of the
    OpenStackDeployments that are older than this one. revisions: the newest one of each
    release.
    """

    status: Document | None = None
    others: tuple[str, ...] = ()
    revisions: applied.Revisions = dataclasses.field(default_factory=dict)


def parse(body: bytes) -> Request:
    """Return the request of an AdmissionReview.

    Raises:
        ValueError: it is not one of a version that is known.
    """
    try:
        review = decoding.decode(body, _Review)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not an {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        shown = f"{review.api_version} {review.kind}"
        raise ValueError(f"{shown!r}: must be {API_VERSION} {KIND}")
    return review.request


def judge(request: Request, facts: Facts) -> tuple[config.FieldProblem, ...]:
    """Return what forbids a request; empty: it is admitted."""
    match request.kind:
        case Operation.DELETE:
            return _judge_deletion(request.old_object or {}, facts)
        case Operation.STATUS:
            change = _change(
                request.object or {},
                facts,
                status=_part(request.object, "status"),
                status_before=_part(request.old_object, "status"),
            )
            return table.problems(change, table.STATUS)
        case Operation.CREATE | Operation.UPDATE:
            return _judge_spec(request, facts)
    return ()


def _judge_deletion(
    document: Document, facts: Facts
) -> tuple[config.FieldProblem, ...]:
    known = {"metadata": {}, **document}
    change = applied.deletion_of(known, facts.status, facts.revisions)
    return table.problems(change, table.DELETION)


def _judge_spec(request: Request, facts: Facts) -> tuple[config.FieldProblem, ...]:
    document = request.object or {}
    before = request.old_object
    if _metadata(document).get("deletionTimestamp") or _is_same(before, document):
        return ()
    try:
        effective = _effective(document)
    except config.ConfigError as error:
        return tuple(
            problem
            for problem in error.problems
            if isinstance(problem, config.FieldProblem)
        )
    change = _change(
        document,
        facts,
        spec=effective,
        written=_part(document, "spec"),
        before=_before(before),
        others=facts.others,
    )
    return table.problems(change)


def _is_same(before: Document | None, document: Document) -> bool:
    """Report whether the spec does not change; unknown for one that is too deep."""
    try:
        return before is not None and before.get("spec") == document.get("spec")
    except RecursionError:
        return False


def _change(document: Document, facts: Facts, **fields: Any) -> rule.Change:
    known = {"metadata": {}, **document}
    base = applied.change_of(known, facts.status, facts.revisions)
    return dataclasses.replace(base, **fields)


def _effective(document: Document) -> Mapping[str, Any]:
    """Return the effective spec; values of Secrets stay references.

    Raises:
        ConfigError: it cannot be read.
    """
    effective: Mapping[str, Any] = layers.effective(spec.parse(document).spec)
    return effective


def _before(document: Document | None) -> Mapping[str, Any] | None:
    """Return the effective spec before the change; None if there is none to compare."""
    try:
        return None if document is None else _effective(document)
    except config.ConfigError:
        return None


def _metadata(document: Document | None) -> Mapping[str, Any]:
    return _part(document, "metadata")


def _part(document: Document | None, name: str) -> Mapping[str, Any]:
    part = (document or {}).get(name)
    return part if isinstance(part, Mapping) else {}


def answer(uid: str, problems: tuple[config.FieldProblem, ...]) -> bytes:
    """Return the AdmissionReview that answers a request."""
    response: dict[str, object] = {"uid": uid, "allowed": not problems}
    if problems:
        message = "; ".join(map(str, problems))
        shown = (
            message if len(message) <= MESSAGE_MAX else message[:MESSAGE_MAX] + "..."
        )
        response["status"] = {
            "code": int(http.HTTPStatus.BAD_REQUEST),
            "reason": "BadRequest",
            "message": shown,
        }
    document = {"apiVersion": API_VERSION, "kind": KIND, "response": response}
    return msgspec.json.encode(document)
