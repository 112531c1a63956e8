"""What the facts of a diagnosis mean: pure, facts in, lines out.

One function for each check; each gives at least one line, and a remedy where one is
needed. The facts are read by lib/osdpl/doctor/diagnosis.py.
"""

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence

from lib.doctor.model import CheckResult, CheckState
from lib.helm import model as helm
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import bundles, planning
from lib.osdpl.reconcile.snapshot import Blocker, Refused
from lib.osdpl.webhook import webhook_certificate

API_SERVER = "API server"
DEFINITIONS = "definitions"
RIGHTS = "rights"
POD_SECURITY = "Pod Security"
NODES = "node labels"
STORAGE = "StorageClasses"
CHARTS = "chart sources"
LEASE = "lease"
RELEASES = "releases"
SECRETS = "Secrets"
WEBHOOK = "webhook"
CHECKS = (
    *(API_SERVER, DEFINITIONS, RIGHTS, POD_SECURITY, NODES, STORAGE, CHARTS, LEASE),
    *(RELEASES, SECRETS, WEBHOOK),
)
"""Every check, in the order of the lines."""
PRIVILEGED = "pod-security.kubernetes.io/enforce=privileged"
PENDING_MAX_S = 3600.0
"""As the alert OsdplReleasePending."""
APPLY_CRDS = f"{planning.APPLY_CRDS}: helm never updates CRDs"


def failed(check: str, text: str, remedy: str) -> tuple[CheckResult, ...]:
    """Return the line of a check whose facts could not be read."""
    return (CheckResult(check, CheckState.FAILED, text, remedy),)


def definition(
    name: str, document: Document | None, is_bundle: bool
) -> tuple[CheckResult, ...]:
    """Judge a CustomResourceDefinition; None: it does not exist."""
    if document is None:
        return failed(DEFINITIONS, f"{name} does not exist", APPLY_CRDS)
    versions = {
        version["name"]
        for version in document["spec"]["versions"]
        if version.get("served")
    }
    if "v1alpha1" not in versions:
        text = f"{name} does not serve v1alpha1, only {', '.join(sorted(versions))}"
        return failed(DEFINITIONS, text, APPLY_CRDS)
    if is_bundle and not bundles.is_owned(document):
        text = f"{name} belongs to another controller"
        label = f"{bundles.MANAGED_BY}={bundles.MANAGER}"
        remedy = f"remove that controller, then label the definition {label}"
        return failed(DEFINITIONS, text, remedy)
    return (CheckResult(DEFINITIONS, CheckState.OK, f"{name} serves v1alpha1"),)


def pods(namespace: str, refused: Blocker | None) -> tuple[CheckResult, ...]:
    """Judge whether privileged pods are allowed. refused: why they are not."""
    if refused is None:
        text = f"privileged pods are allowed in namespace {namespace}"
        return (CheckResult(POD_SECURITY, CheckState.OK, text),)
    label = f"kubectl label --overwrite namespace {namespace} {PRIVILEGED}"
    remedies = {
        Refused.NAMESPACE_MISSING: f"kubectl create namespace {namespace}",
        Refused.POD_SECURITY: label,
    }
    remedy = remedies.get(refused.reason, "see the rights above")
    return failed(POD_SECURITY, refused.message, remedy)


def nodes(
    roles: Sequence[tuple[str, str]], labels: Sequence[Mapping[str, str]]
) -> tuple[CheckResult, ...]:
    """Judge the labels of Nodes. roles: label and value that pods select."""
    return tuple(_role(key, value, labels) for key, value in roles)


def _role(key: str, value: str, labels: Sequence[Mapping[str, str]]) -> CheckResult:
    count = sum(node.get(key) == value for node in labels)
    if count:
        return CheckResult(
            NODES, CheckState.OK, f"{count} Nodes have the label {key}={value}"
        )
    text = f"no Node has the label {key}={value}: pods of this role stay Pending"
    return CheckResult(
        NODES, CheckState.FAILED, text, f"kubectl label node NAME {key}={value}"
    )


def storage(
    fields: Mapping[str, str], classes: frozenset[str]
) -> tuple[CheckResult, ...]:
    """Judge StorageClasses. fields: the class that each field of the spec names."""
    if not fields:
        text = "the spec names no StorageClass"
        remedy = "set spec.persistent_volume_storage_class"
        return failed(STORAGE, text, remedy)
    known = ", ".join(sorted(classes)) or "none"
    return tuple(
        (
            CheckResult(STORAGE, CheckState.OK, f"spec.{field}: {name} exists")
            if name in classes
            else CheckResult(
                STORAGE,
                CheckState.FAILED,
                f"spec.{field}: {name} does not exist",
                f"create it, or name one that exists: {known}",
            )
        )
        for field, name in fields.items()
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ChartFact:
    """A chart as its source has it. error: empty: it was read as pinned."""

    release: str
    name: str
    version: str
    source: str
    error: str = ""


def charts(facts: Sequence[ChartFact]) -> tuple[CheckResult, ...]:
    """Judge the charts: each that cannot be read is a line."""
    bad = [fact for fact in facts if fact.error]
    remedy = "correct spec.common.charts.repositories, the version or the digest"
    lines = [
        CheckResult(CHARTS, CheckState.FAILED, f"{fact.release}: {fact.error}", remedy)
        for fact in bad
    ]
    good = len(facts) - len(bad)
    if good:
        sources = ", ".join(sorted({fact.source for fact in facts if not fact.error}))
        text = f"{good} charts of {sources} have the digests that are pinned"
        lines.append(CheckResult(CHARTS, CheckState.OK, text))
    return tuple(lines)


def releases(
    revisions: Mapping[str, helm.Revision],
    unreadable: Mapping[str, str],
    now: datetime.datetime,
) -> tuple[CheckResult, ...]:
    """Judge the releases: pending, failed and unreadable ones are named."""
    lines = [
        line
        for name, revision in sorted(revisions.items())
        if (line := _release(revision, unreadable.get(name, ""), now)) is not None
    ]
    good = len(revisions) - len(lines)
    return (
        *lines,
        CheckResult(RELEASES, CheckState.OK, f"{good} releases are deployed"),
    )


def _release(
    revision: helm.Revision, unreadable: str, now: datetime.datetime
) -> CheckResult | None:
    if unreadable:
        remedy = f"restore the Secret {revision.secret_name}, or delete it"
        return CheckResult(
            RELEASES, CheckState.FAILED, f"{revision.name}: {unreadable}", remedy
        )
    if revision.status.is_pending:
        known = revision.modified_at
        age_s = (now - known).total_seconds() if known is not None else PENDING_MAX_S
        state = CheckState.WARNING if age_s < PENDING_MAX_S else CheckState.FAILED
        text = f"{revision.name} has been {revision.status.value} for {age_s:.0f} s"
        remedy = (
            "wait for helm; when no helm runs, osdpl-controller removes the Secret"
            f" {revision.secret_name} and upgrades the release"
        )
        return CheckResult(RELEASES, state, text, remedy)
    if revision.status is helm.Status.DEPLOYED:
        return None
    remedy = "see its message in the HelmBundle: kubectl get helmbundles -o yaml"
    text = f"{revision.name} is {revision.status.value}"
    return CheckResult(RELEASES, CheckState.FAILED, text, remedy)


def secrets(problems: Sequence[str], missing: Sequence[str]) -> tuple[CheckResult, ...]:
    """Judge Secrets. problems: of references. missing: credentials to be generated."""
    lines = [
        CheckResult(
            SECRETS,
            CheckState.FAILED,
            text,
            "create the Secret, or correct the reference",
        )
        for text in problems
    ]
    if missing:
        text = f"{len(missing)} Secrets of credentials do not exist yet or lack keys"
        remedy = "none is needed: osdpl-controller generates them"
        lines.append(CheckResult(SECRETS, CheckState.WARNING, text, remedy))
    if not lines:
        text = "all Secrets that the spec refers to exist, and all credentials"
        lines.append(CheckResult(SECRETS, CheckState.OK, text))
    return tuple(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class WebhookFact:
    """published: authorities by webhook; None: there is no configuration. held: the
    Secret's content, None if there is none. answer: of the API server to an invalid
    object: empty: it was admitted.
    """

    published: tuple[bytes, ...] | None
    held: webhook_certificate.Held | None
    answer: str


def webhook(
    fact: WebhookFact, names: Sequence[str], now: datetime.datetime
) -> Iterator[CheckResult]:
    """Judge the webhook by its certificate, and by an invalid request."""
    if fact.published is None:
        text = "no ValidatingWebhookConfiguration: only reconciliations apply the rules"
        remedy = "set webhook.enabled of the chart"
        yield CheckResult(WEBHOOK, CheckState.WARNING, text, remedy)
        return
    if fact.held is None:
        text = "the Secret with its certificate does not exist"
        remedy = "see that osdpl-controller runs, and what it logs"
        yield CheckResult(WEBHOOK, CheckState.FAILED, text, remedy)
    else:
        yield _certificate(fact.held, fact.published, names, now)
    if "failed calling webhook" in fact.answer:
        remedy = "see that the pods of osdpl-controller are ready, and its port is open"
        yield CheckResult(WEBHOOK, CheckState.FAILED, fact.answer, remedy)
    elif not fact.answer:
        text = "an invalid object was admitted: the webhook was not asked"
        remedy = "see that the pods of osdpl-controller are ready; failurePolicy Ignore"
        yield CheckResult(WEBHOOK, CheckState.FAILED, text, remedy)
    else:
        text = "the API server asks it: an invalid object is denied"
        yield CheckResult(WEBHOOK, CheckState.OK, text)


def _certificate(
    held: webhook_certificate.Held,
    published: tuple[bytes, ...],
    names: Sequence[str],
    now: datetime.datetime,
) -> CheckResult:
    due = webhook_certificate.step(held, published, names, now)
    if due.why:
        remedy = "see that osdpl-controller runs, and what it logs: it is replaced"
        return CheckResult(
            WEBHOOK, CheckState.FAILED, f"its certificate: {due.why}", remedy
        )
    if set(published) != {held.bundle}:
        text = "the API server trusts another authority than that of its certificate"
        remedy = "see that osdpl-controller runs, and what it logs: it is published"
        return CheckResult(WEBHOOK, CheckState.FAILED, text, remedy)
    return CheckResult(WEBHOOK, CheckState.OK, "its certificate is valid and published")


def unchecked(check: str, text: str) -> tuple[CheckResult, ...]:
    """Return the line of a check whose facts do not exist."""
    return (CheckResult(check, CheckState.SKIPPED, text),)
