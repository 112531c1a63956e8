"""What the facts mean: pure, what was read in, lines out.

One function for each kind of check; each gives at least one line.
"""

import datetime

from lib.cloud import checkup, errors
from lib.doctor.model import (
    CheckResult,
    CheckState,
    ClockReadings,
    LeaseHolder,
    Read,
    ReadFailure,
    Right,
)

CLOUD_CONF = "cloud configuration"
CREDENTIALS = "credentials"
ENDPOINTS = "endpoints"
QUOTAS = "quotas"
BALANCERS = "load balancers"
ROUTES = "routes"
CLOUD_CLOCK = "cloud's clock"
API_SERVER = "API server"
KUBE_CLOCK = "API server's clock"
RIGHTS = "rights"
LEASE = "lease"
PROVIDER_IDS = "provider ids"
CHECKS = (
    CLOUD_CONF,
    CREDENTIALS,
    ENDPOINTS,
    QUOTAS,
    BALANCERS,
    ROUTES,
    CLOUD_CLOCK,
    API_SERVER,
    KUBE_CLOCK,
    RIGHTS,
    LEASE,
    PROVIDER_IDS,
)
"""Every check, in the order in which they are made."""

SKEW_ODD_S = 5.0
SKEW_BAD_S = 60.0
"""Why these: docs/decisions/0010-doctor.md."""
QUOTA_NEAR = 0.9

Logins = Read[checkup.Login] | ReadFailure
_NO_RIGHT = "give the user a role in the project that allows it"


def configuration(read: Read[tuple[str, ...]] | ReadFailure) -> tuple[CheckResult, ...]:
    """Judge the configuration of the cloud by what is odd in it."""
    if isinstance(read, ReadFailure):
        remedy = "correct the file; each problem names section, key and what is right"
        return (CheckResult(CLOUD_CONF, CheckState.FAILED, read.text, remedy),)
    if not read.value:
        return (CheckResult(CLOUD_CONF, CheckState.OK, "it can be read and used"),)
    return tuple(
        CheckResult(CLOUD_CONF, CheckState.WARNING, odd, "correct the file")
        for odd in read.value
    )


def login(read: Logins, remedies: checkup.Remedies) -> CheckResult:
    """Judge the log-in."""
    if isinstance(read, ReadFailure):
        by_reason = {
            errors.Unauthenticated.reason: remedies.credentials,
            errors.Unavailable.reason: remedies.unreachable,
        }
        remedy = by_reason.get(read.reason, "see the cloud's own log")
        return CheckResult(CREDENTIALS, CheckState.FAILED, read.text, remedy)
    access = read.value
    if not access.project:
        text = f"logged in as {access.user}, but to no project"
        return CheckResult(CREDENTIALS, CheckState.FAILED, text, remedies.project)
    text = f"logged in as {access.user} to project {access.project}"
    if access.expires_at is not None:
        text += f"; this token ends at {access.expires_at:%Y-%m-%d %H:%M} UTC"
    return CheckResult(CREDENTIALS, CheckState.OK, text)


def service(
    endpoint: checkup.ServiceEndpoint, region: str, remedies: checkup.Remedies
) -> CheckResult:
    """Judge one service of the cloud."""
    where = f" in region {region}" if region else ""
    if not endpoint.url and endpoint.needed:
        text = f"{endpoint.kind}: the catalogue has none{where}"
        return CheckResult(ENDPOINTS, CheckState.FAILED, text, remedies.endpoint)
    if not endpoint.url:
        text = (
            f"{endpoint.kind}: the catalogue has none{where}; what needs it can't run"
        )
        return CheckResult(ENDPOINTS, CheckState.SKIPPED, text)
    if endpoint.error is not None:
        state = CheckState.FAILED if endpoint.needed else CheckState.WARNING
        text = f"{endpoint.kind} at {endpoint.url}: {endpoint.error.message}"
        remedy = "see that this URL can be reached from here, and that the service runs"
        return CheckResult(ENDPOINTS, state, text, remedy)
    text = f"{endpoint.kind} at {endpoint.url}: version {endpoint.version}"
    if endpoint.odd:
        remedy = "ask who runs the cloud for a newer release"
        return CheckResult(
            ENDPOINTS, CheckState.WARNING, f"{text}; {endpoint.odd}", remedy
        )
    return CheckResult(ENDPOINTS, CheckState.OK, text)


def quotas(
    kind: str, quotas_read: tuple[checkup.Quota, ...] | errors.CloudError
) -> tuple[CheckResult, ...]:
    """Judge the quotas of one service; those far from their limit are one line."""
    if isinstance(quotas_read, errors.CloudError):
        text = f"{kind}: {quotas_read.message}"
        remedy = _NO_RIGHT if isinstance(quotas_read, errors.Forbidden) else ""
        remedy = remedy or "see that the service runs"
        return (CheckResult(QUOTAS, CheckState.WARNING, text, remedy),)
    near = tuple(quota for quota in quotas_read if _is_near(quota))
    if not near:
        text = f"{kind}: none of {len(quotas_read)} is nearly used up"
        return (CheckResult(QUOTAS, CheckState.OK, text),)
    remedy = "free some, or ask who runs the cloud for more"
    return tuple(
        CheckResult(
            QUOTAS,
            CheckState.WARNING,
            f"{kind}: {quota.used} of {quota.limit} {quota.resource} are used",
            remedy,
        )
        for quota in near
    )


def _is_near(quota: checkup.Quota) -> bool:
    return quota.limit is not None and quota.used >= quota.limit * QUOTA_NEAR


def routes(
    read: Read[checkup.Routing | None] | ReadFailure,
) -> tuple[CheckResult, ...]:
    """Judge the route table that the configuration names; without one no line."""
    if isinstance(read, ReadFailure):
        return (CheckResult(ROUTES, CheckState.SKIPPED, read.text),)
    return () if read.value is None else (_table(read.value),)


def _table(table: checkup.Routing) -> CheckResult:
    named = f"{table.setting} is {table.table!r}"
    if table.error is not None:
        is_absent = isinstance(table.error, errors.NotFound | errors.Unsupported)
        state = CheckState.FAILED if is_absent else CheckState.WARNING
        remedy = "name a router of this project, or remove the setting"
        return CheckResult(ROUTES, state, f"{named}: {table.error.message}", remedy)
    if not table.interfaces:
        remedy = "add an interface in the subnet of the Nodes"
        return CheckResult(ROUTES, CheckState.FAILED, f"{named}: no interface", remedy)
    text = f"{named}: {table.interfaces} subnets, {table.routes} routes"
    return CheckResult(ROUTES, CheckState.OK, text)


def balancers(
    read: Read[checkup.Balancing | None] | ReadFailure, remedies: checkup.Remedies
) -> tuple[CheckResult, ...]:
    """Judge what load balancers need; each thing that is wrong is one line."""
    if isinstance(read, ReadFailure):
        return (CheckResult(BALANCERS, CheckState.SKIPPED, read.text),)
    settings = read.value
    if settings is None:
        text = "the configuration wants none to be kept"
        return (CheckResult(BALANCERS, CheckState.SKIPPED, text),)
    if settings.error is not None:
        text = f"Services of type LoadBalancer get none: {settings.error.message}"
        remedy = "see that the load-balancer service runs, or set enabled to false"
        return (CheckResult(BALANCERS, CheckState.WARNING, text, remedy),)
    wrong = tuple(
        line for setting in settings.named if (line := _named(setting, remedies))
    )
    if not settings.has_tags:
        text = (
            f"version {settings.version} of the API has no tags: whose a load balancer"
            " is stands in its description, and none can be shared"
        )
        remedy = "ask who runs the cloud for a newer release"
        return (CheckResult(BALANCERS, CheckState.WARNING, text, remedy), *wrong)
    if wrong:
        return wrong
    text = f"version {settings.version}; all that is named for them is there"
    return (CheckResult(BALANCERS, CheckState.OK, text),)


def _named(
    setting: checkup.NamedSetting, remedies: checkup.Remedies
) -> CheckResult | None:
    """Judge one thing that the configuration names; None: it is well."""
    said = (
        f"{setting.setting} is {setting.value!r}" if setting.value else setting.setting
    )
    if setting.error is not None:
        text = f"{said}: it can't be looked for: {setting.error.message}"
        remedy = _NO_RIGHT if isinstance(setting.error, errors.Forbidden) else ""
        remedy = remedy or "see that the service runs"
        return CheckResult(BALANCERS, CheckState.WARNING, text, remedy)
    if not setting.matches and setting.value:
        text = f"{said}, but there is no such {setting.kind} that may be used"
        remedy = "correct the setting, or have it made and shared with the project"
        return CheckResult(BALANCERS, CheckState.FAILED, text, remedy)
    if not setting.matches:
        text = f"{said} is not set, and there is no {setting.kind}: all are internal"
        return CheckResult(BALANCERS, CheckState.WARNING, text, remedies.internal)
    if len(setting.matches) > 1 and not setting.value:
        shown = ", ".join(setting.matches)
        text = f"{said} is not set, and the first {setting.kind} of several counts: "
        return CheckResult(
            BALANCERS, CheckState.WARNING, text + shown, "set it to one of them"
        )
    return None


def clock(check: str, read: Read[ClockReadings] | ReadFailure) -> CheckResult:
    """Judge another clock beside ours.

    Its time is told in whole seconds, and is half a second late in the mean.
    """
    if isinstance(read, ReadFailure):
        return CheckResult(check, CheckState.SKIPPED, read.text)
    if read.value.theirs is None:
        return CheckResult(check, CheckState.SKIPPED, "its answer has no Date")
    off_s = (read.value.theirs - read.value.ours).total_seconds() + 0.5
    way = "ahead of" if off_s > 0 else "behind"
    if abs(off_s) <= SKEW_ODD_S:
        text = f"within {SKEW_ODD_S:g} s of the one here"
        return CheckResult(check, CheckState.OK, text)
    state = CheckState.FAILED if abs(off_s) > SKEW_BAD_S else CheckState.WARNING
    text = f"{abs(off_s):.0f} s {way} the one here"
    return CheckResult(check, state, text, "let NTP set the clock on both machines")


def api_server(read: Read[str] | ReadFailure) -> CheckResult:
    """Judge whether the API server answers; read: its version."""
    if isinstance(read, ReadFailure):
        remedy = (
            "see that the kubeconfig's server is right and can be reached from here"
        )
        return CheckResult(API_SERVER, CheckState.FAILED, read.text, remedy)
    return CheckResult(
        API_SERVER, CheckState.OK, f"it answers: {read.value or 'no version'}"
    )


def rights(
    count: int, who: str, gaps: Read[tuple[Right, ...]] | ReadFailure
) -> tuple[CheckResult, ...]:
    """Judge the rights; each that lacks is one line. wanted: how many there are."""
    if isinstance(gaps, ReadFailure):
        remedy = "use credentials that the API server accepts"
        return (CheckResult(RIGHTS, CheckState.FAILED, gaps.text, remedy),)
    if not gaps.value:
        text = f"{who} has all {count} rights of the chart"
        return (CheckResult(RIGHTS, CheckState.OK, text),)
    remedy = "apply the RBAC manifest of the chart, and bind it to the account in use"
    return tuple(
        CheckResult(RIGHTS, CheckState.FAILED, f"{who} may not {gap}", remedy)
        for gap in gaps.value
    )


def lease(
    name: str, read: Read[LeaseHolder | None] | ReadFailure, now: datetime.datetime
) -> CheckResult:
    """Judge who leads. Nobody is no fault before the daemon was deployed."""
    if isinstance(read, ReadFailure):
        return CheckResult(LEASE, CheckState.FAILED, read.text, "see the rights above")
    lease = read.value
    remedy = "see that a cloud controller manager runs, and what it logs"
    if lease is None or not lease.holder:
        why = "there is none" if lease is None else "it was released"
        text = f"nobody holds {name}: {why}"
        return CheckResult(LEASE, CheckState.WARNING, text, remedy)
    if lease.renewed_at is None:
        text = f"{lease.holder} holds {name}, and never renewed it"
        return CheckResult(LEASE, CheckState.WARNING, text, remedy)
    age_s = (now - lease.renewed_at).total_seconds()
    text = f"{lease.holder} holds {name}, renewed {max(age_s, 0.0):.0f} s ago"
    if age_s > lease.duration_s:
        text += f", though it holds for {lease.duration_s} s only: its holder is gone"
        return CheckResult(LEASE, CheckState.WARNING, text, remedy)
    return CheckResult(LEASE, CheckState.OK, text)
