"""Results of the checks, from what was read: pure.

One function for each kind of check; each returns at least one result.
"""

import datetime

from lib.cloud import checkup, errors
from lib.doctor.model import (
    CRASHED,
    NOT_READY,
    UNSCHEDULABLE,
    CheckResult,
    CheckState,
    ClockReadings,
    DaemonAccount,
    LeaseHolder,
    PodProblem,
    PodReport,
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
CLOUD_RIGHTS = "rights in the cloud"
CLOUD_CLOCK = "cloud's clock"
API_SERVER = "API server"
KUBE_CLOCK = "API server's clock"
RIGHTS = "rights"
LEASE = "lease"
PROVIDER_IDS = "provider ids"
PODS = "pods"
CHECKS = (
    CLOUD_CONF,
    CREDENTIALS,
    ENDPOINTS,
    QUOTAS,
    BALANCERS,
    ROUTES,
    CLOUD_RIGHTS,
    CLOUD_CLOCK,
    API_SERVER,
    KUBE_CLOCK,
    RIGHTS,
    LEASE,
    PROVIDER_IDS,
    PODS,
)
"""Every check, in the order of execution."""

SKEW_WARNING_S = 5.0
SKEW_FAILED_S = 60.0
"""Reasons: docs/decisions/0010-doctor.md."""
GAPS_SHOWN = 3
"""Missing permissions in one line; the format wide has all of them."""
QUOTA_NEAR = 0.9

_IMAGE = (
    "check the chart's values image and imagePullSecrets, the registry, and that the"
    " image has the architecture of the Node"
)
_CREDENTIALS = (
    "create the Secret with the key that the chart's value cloudConfig names; the Pod"
    " then starts"
)
_POD_REMEDIES = {
    "ErrImagePull": _IMAGE,
    "ErrImageNeverPull": _IMAGE,
    "ImageInspectError": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "InvalidImageName": _IMAGE,
    "RunContainerError": _IMAGE,
    "CreateContainerConfigError": _CREDENTIALS,
    "FailedMount": _CREDENTIALS,
    UNSCHEDULABLE: (
        "check nodeSelector and tolerations of the chart, and that no other Pod uses"
        " its port on the host"
    ),
}
_CRASHES = (CRASHED, "StartError")
Logins = Read[checkup.Login] | ReadFailure
_CORRECT = "correct what each problem names: an option, or section and key"
_NO_CONF = (
    "create it, or name another one: --cloud-config FILE, or --cloud-config-secret"
    " NAMESPACE/NAME"
)
_NO_RIGHT = "give the user a role in the project that allows it"


def configuration(read: Read[tuple[str, ...]] | ReadFailure) -> tuple[CheckResult, ...]:
    """Check the configuration of the cloud. read: its warnings."""
    if isinstance(read, ReadFailure):
        is_absent = "not found" in read.text or "no such file" in read.text
        remedy = _NO_CONF if is_absent else _CORRECT
        return (CheckResult(CLOUD_CONF, CheckState.FAILED, read.text, remedy),)
    if not read.value:
        return (CheckResult(CLOUD_CONF, CheckState.OK, "valid"),)
    return tuple(
        CheckResult(CLOUD_CONF, CheckState.WARNING, warning, "correct the file")
        for warning in read.value
    )


def login(read: Logins, remedies: checkup.Remedies) -> CheckResult:
    """Check the authentication."""
    if isinstance(read, ReadFailure):
        by_reason = {
            errors.Unauthenticated.reason: remedies.credentials,
            errors.Unavailable.reason: remedies.unreachable,
        }
        remedy = by_reason.get(read.reason, "see the cloud's own log")
        return CheckResult(CREDENTIALS, CheckState.FAILED, read.text, remedy)
    access = read.value
    if not access.project:
        text = f"authenticated as {access.user}, but for no project"
        return CheckResult(CREDENTIALS, CheckState.FAILED, text, remedies.project)
    text = f"authenticated as {access.user} for project {access.project}"
    if access.roles:
        text += f"; roles: {', '.join(access.roles)}"
    if access.expires_at is not None:
        text += f"; the credential expires at {access.expires_at:%Y-%m-%d %H:%M} UTC"
    if access.is_reader:
        text += ": these roles cannot create or change anything"
        return CheckResult(CREDENTIALS, CheckState.FAILED, text, remedies.reader)
    return CheckResult(CREDENTIALS, CheckState.OK, text)


def service(
    endpoint: checkup.ServiceEndpoint, region: str, remedies: checkup.Remedies
) -> CheckResult:
    """Check one service of the cloud."""
    where = f" in region {region}" if region else ""
    if not endpoint.url and endpoint.needed:
        text = f"{endpoint.kind}: not in the catalogue{where}"
        return CheckResult(ENDPOINTS, CheckState.FAILED, text, remedies.endpoint)
    if not endpoint.url:
        text = (
            f"{endpoint.kind}: not in the catalogue{where}; features that require it"
            " are unavailable"
        )
        return CheckResult(ENDPOINTS, CheckState.SKIPPED, text)
    if endpoint.error is not None:
        state = CheckState.FAILED if endpoint.needed else CheckState.WARNING
        text = f"{endpoint.kind} at {endpoint.url}: {endpoint.error.message}"
        remedy = "check that this URL is reachable from here, and that the service runs"
        return CheckResult(ENDPOINTS, state, text, remedy)
    text = f"{endpoint.kind} at {endpoint.url}: version {endpoint.version}"
    if endpoint.warning:
        remedy = "ask your cloud administrator for a newer release"
        return CheckResult(
            ENDPOINTS, CheckState.WARNING, f"{text}; {endpoint.warning}", remedy
        )
    return CheckResult(ENDPOINTS, CheckState.OK, text)


def quotas(
    kind: str, quotas_read: tuple[checkup.Quota, ...] | errors.CloudError
) -> tuple[CheckResult, ...]:
    """Check the quotas of one service; those below the limit are one line."""
    if isinstance(quotas_read, errors.CloudError):
        text = f"{kind}: {quotas_read.message}"
        remedy = _NO_RIGHT if isinstance(quotas_read, errors.Forbidden) else ""
        remedy = remedy or "check that the service runs"
        return (CheckResult(QUOTAS, CheckState.WARNING, text, remedy),)
    near = tuple(quota for quota in quotas_read if _is_near(quota))
    if not near:
        text = f"{kind}: none of {len(quotas_read)} is close to its limit"
        return (CheckResult(QUOTAS, CheckState.OK, text),)
    remedy = "free some, or ask your cloud administrator for more"
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
    """Check the route table of the configuration; without one no line."""
    if isinstance(read, ReadFailure):
        return (CheckResult(ROUTES, CheckState.SKIPPED, read.text),)
    return () if read.value is None else (_table(read.value),)


def cloud_rights(
    read: Read[tuple[checkup.ComponentRights, ...]] | ReadFailure,
) -> tuple[CheckResult, ...]:
    """Check the rights of each component; no line where they cannot be asked for."""
    if isinstance(read, ReadFailure):
        return (CheckResult(CLOUD_RIGHTS, CheckState.SKIPPED, read.text),)
    return tuple(_rights_of(rights) for rights in read.value)


def _rights_of(rights: checkup.ComponentRights) -> CheckResult:
    if not rights.missing:
        text = f"{rights.component}: all {rights.count}"
        return CheckResult(CLOUD_RIGHTS, CheckState.OK, text)
    state = CheckState.FAILED if rights.needed else CheckState.WARNING
    text = f"{rights.component}: the user cannot {'; cannot '.join(rights.missing)}"
    remedy = _NO_RIGHT
    if not rights.needed:
        remedy += f", unless {rights.component} has other credentials"
    return CheckResult(CLOUD_RIGHTS, state, text, remedy)


def _table(table: checkup.Routing) -> CheckResult:
    named = f"{table.setting} is {table.table!r}"
    if table.error is not None:
        is_absent = isinstance(table.error, errors.NotFound | errors.Unsupported)
        state = CheckState.FAILED if is_absent else CheckState.WARNING
        remedy = (
            "name a router of this project in the region of the configuration, or"
            " remove the setting"
        )
        return CheckResult(ROUTES, state, f"{named}: {table.error.message}", remedy)
    if not table.interfaces:
        remedy = "add an interface in the subnet of the Nodes"
        return CheckResult(ROUTES, CheckState.FAILED, f"{named}: no interface", remedy)
    text = f"{named}: {table.interfaces} subnets, {table.routes} routes"
    return CheckResult(ROUTES, CheckState.OK, text)


def balancers(
    read: Read[checkup.Balancing | None] | ReadFailure, remedies: checkup.Remedies
) -> tuple[CheckResult, ...]:
    """Check the requirements of load balancers; one line for each problem."""
    if isinstance(read, ReadFailure):
        return (CheckResult(BALANCERS, CheckState.SKIPPED, read.text),)
    settings = read.value
    if settings is None:
        text = "load balancers are disabled in the configuration"
        return (CheckResult(BALANCERS, CheckState.SKIPPED, text),)
    if settings.error is not None:
        cause = settings.error.message
        text = f"Services of type LoadBalancer get no load balancer: {cause}"
        remedy = "check that the load-balancer service runs, or set enabled to false"
        return (CheckResult(BALANCERS, CheckState.WARNING, text, remedy),)
    problems = tuple(
        line for setting in settings.named if (line := _named(setting, remedies))
    )
    if not settings.has_tags:
        text = (
            f"version {settings.version} of the API has no tags: the owner of a load"
            " balancer is recorded in its description; load balancers cannot be shared"
        )
        remedy = "ask your cloud administrator for a newer release"
        return (CheckResult(BALANCERS, CheckState.WARNING, text, remedy), *problems)
    if problems:
        return problems
    text = f"version {settings.version}; all objects named in the configuration exist"
    return (CheckResult(BALANCERS, CheckState.OK, text),)


def _named(
    setting: checkup.NamedSetting, remedies: checkup.Remedies
) -> CheckResult | None:
    """Check one object named in the configuration; None: no problem."""
    label = (
        f"{setting.setting} is {setting.value!r}" if setting.value else setting.setting
    )
    if setting.error is not None:
        text = f"{label}: cannot be read: {setting.error.message}"
        remedy = _NO_RIGHT if isinstance(setting.error, errors.Forbidden) else ""
        remedy = remedy or "check that the service runs"
        return CheckResult(BALANCERS, CheckState.WARNING, text, remedy)
    if not setting.matches and setting.value:
        text = f"{label}: not found: no such {setting.kind} is accessible"
        remedy = "correct the setting, or create the object in or for the project"
        return CheckResult(BALANCERS, CheckState.FAILED, text, remedy)
    if not setting.matches:
        text = (
            f"{label}: not set, and there is no {setting.kind}: all load balancers"
            " are internal"
        )
        return CheckResult(BALANCERS, CheckState.WARNING, text, remedies.internal)
    if len(setting.matches) > 1 and not setting.value:
        shown = ", ".join(setting.matches)
        text = f"{label}: not set; the first of several {setting.kind}s is used: "
        return CheckResult(
            BALANCERS, CheckState.WARNING, text + shown, "set it to one of these"
        )
    return None


def clock(check: str, read: Read[ClockReadings] | ReadFailure) -> CheckResult:
    """Compare another clock with the local one.

    Its time has whole seconds, and is half a second late on average.
    """
    if isinstance(read, ReadFailure):
        return CheckResult(check, CheckState.SKIPPED, read.text)
    if read.value.remote is None:
        return CheckResult(check, CheckState.SKIPPED, "the answer has no Date header")
    off_s = (read.value.remote - read.value.local).total_seconds() + 0.5
    way = "ahead of" if off_s > 0 else "behind"
    if abs(off_s) <= SKEW_WARNING_S:
        text = f"within {SKEW_WARNING_S:g} s of the local clock"
        return CheckResult(check, CheckState.OK, text)
    state = CheckState.FAILED if abs(off_s) > SKEW_FAILED_S else CheckState.WARNING
    text = f"{abs(off_s):.0f} s {way} the local clock"
    return CheckResult(check, state, text, "synchronize both clocks with NTP")


def api_server(read: Read[str] | ReadFailure) -> CheckResult:
    """Check whether the API server answers. read: its version."""
    if isinstance(read, ReadFailure):
        remedy = "check that the kubeconfig's server is correct and reachable from here"
        return CheckResult(API_SERVER, CheckState.FAILED, read.text, remedy)
    return CheckResult(
        API_SERVER, CheckState.OK, f"reachable: {read.value or 'no version'}"
    )


def no_account(account: DaemonAccount) -> CheckResult:
    """Return the result for the permissions of an account that does not exist."""
    named = f"{account.namespace}/{account.name}"
    text = f"ServiceAccount {named} does not exist"
    remedy = "name that of the component's Deployment; the chart creates it"
    return CheckResult(RIGHTS, CheckState.FAILED, text, remedy)


def rights(
    count: int,
    user: str,
    gaps: Read[tuple[Right, ...]] | ReadFailure,
    component: str,
) -> tuple[CheckResult, ...]:
    """Check the permissions of a component. count: of all of them.

    A line for each missing one; one line for more than GAPS_SHOWN, which have one
    cause: the manifest is not applied, or is bound to another account.
    """
    if isinstance(gaps, ReadFailure):
        remedy = "use credentials that the API server accepts"
        return (CheckResult(RIGHTS, CheckState.FAILED, gaps.text, remedy),)
    if not gaps.value:
        text = f"{user} has all {count} permissions of the manifest"
        return (CheckResult(RIGHTS, CheckState.OK, text),)
    remedy = (
        f"apply charts/{component}/files/rbac.yaml, and bind it to the account in use"
    )
    if len(gaps.value) > GAPS_SHOWN:
        first = "; ".join(map(str, gaps.value[:GAPS_SHOWN]))
        others = tuple(map(str, gaps.value[GAPS_SHOWN:]))
        text = f"{user} lacks {len(gaps.value)} of {count} permissions: {first}"
        more = f"; and {len(others)} others"
        return (CheckResult(RIGHTS, CheckState.FAILED, text + more, remedy, others),)
    return tuple(
        CheckResult(RIGHTS, CheckState.FAILED, f"{user} cannot {gap}", remedy)
        for gap in gaps.value
    )


def lease(
    name: str, read: Read[LeaseHolder | None] | ReadFailure, now: datetime.datetime
) -> CheckResult:
    """Check the Lease. A Lease without a holder is normal before the deployment."""
    if isinstance(read, ReadFailure):
        return CheckResult(
            LEASE, CheckState.FAILED, read.text, "see the check of rights above"
        )
    lease = read.value
    remedy = "check that a cloud controller manager runs, and its log"
    if lease is None or not lease.holder:
        why = "it does not exist" if lease is None else "it was released"
        text = f"{name} is not held: {why}"
        return CheckResult(LEASE, CheckState.WARNING, text, remedy)
    if lease.renewed_at is None:
        text = f"{name} is held by {lease.holder}, never renewed"
        return CheckResult(LEASE, CheckState.WARNING, text, remedy)
    age_s = (now - lease.renewed_at).total_seconds()
    text = f"{name} is held by {lease.holder}, renewed {max(age_s, 0.0):.0f} s ago"
    if age_s <= lease.duration_s:
        done = f"; {lease.work}" if lease.work else ""
        return CheckResult(LEASE, CheckState.OK, f"{text}{done}")
    text += f", and expired after {lease.duration_s} s: its holder has stopped"
    is_lasting = age_s > lease.duration_s + _TAKEN_OVER_S
    state = CheckState.FAILED if is_lasting else CheckState.WARNING
    return CheckResult(LEASE, state, text, remedy)


_TAKEN_OVER_S = 60.0
"""After the end of a Lease another replica has it, or a kubelet has started one."""


def idle(name: str, lease: LeaseHolder | None, now: datetime.datetime) -> str:
    """Return that no process acts, for a Lease that is released or long expired.

    Empty otherwise, also where there is no Lease: nothing is installed then.
    """
    if lease is None or lease.renewed_at is None:
        return ""
    age_s = (now - lease.renewed_at).total_seconds()
    held_s = lease.duration_s if lease.holder else 0
    if age_s <= held_s + _TAKEN_OVER_S:
        return ""
    last = f"was last renewed {max(age_s, 0.0):.0f} s ago"
    state = f"{last} by {lease.holder}" if lease.holder else f"is released, and {last}"
    return f"no cloud controller manager acts: Lease {name} {state}"


def work(lease: LeaseHolder | None, now: datetime.datetime) -> str:
    """Return what the holder of a Lease is doing; empty if that is nothing, or old."""
    if lease is None or lease.renewed_at is None:
        return ""
    age_s = (now - lease.renewed_at).total_seconds()
    return lease.work if age_s <= lease.duration_s else ""


def pods(read: Read[PodReport] | ReadFailure) -> tuple[CheckResult, ...]:
    """Check the Pods of this project; a component itself has no permission for that."""
    if isinstance(read, ReadFailure):
        return (CheckResult(PODS, CheckState.SKIPPED, read.text),)
    if not read.value.number:
        text = "skipped: no Pod of a component is in the cluster"
        return (CheckResult(PODS, CheckState.SKIPPED, text),)
    if not read.value.problems:
        return (CheckResult(PODS, CheckState.OK, f"{read.value.number} Pods run"),)
    return tuple(_pod(problem) for problem in read.value.problems)


def _pod(problem: PodProblem) -> CheckResult:
    name = f"{problem.namespace}/{problem.pod}"
    subject = f"{name}: {problem.container}" if problem.container else name
    is_slow = problem.reason == NOT_READY
    state = CheckState.WARNING if is_slow else CheckState.FAILED
    log = f"kubectl -n {problem.namespace} logs {problem.pod} -c {problem.container}"
    remedy = _POD_REMEDIES.get(problem.reason, f"see the log: {log}")
    if is_slow and not problem.container:
        remedy = f"kubectl -n {problem.namespace} describe pod {problem.pod}"
    if problem.reason in _CRASHES:
        remedy = f"see the log of the last start: {log} --previous"
    text = f"{subject}: {problem.reason}: {problem.text}"
    return CheckResult(PODS, state, text, remedy)
