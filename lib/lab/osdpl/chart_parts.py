"""Parts that the charts of OpenStack services have in common."""

from collections.abc import Mapping

from lib.lab.osdpl.contract import Job, Needs

HOST = ("hostNetwork", "hostPID")
HOST_ALL = (*HOST, "hostIPC")
DATABASE = Needs(services=("oslo_db",))
IDENTITY = Needs(services=("identity",))
ACCOUNT_IMAGES = ("ks_user", "ks_service", "ks_endpoints")
DATABASE_IMAGES = ("db_init", "db_drop")


def named(prefix: str, *names: str) -> tuple[str, ...]:
    """Return paths with a common prefix: ("a.b", "c", "d") are a.b.c and a.b.d."""
    return tuple(f"{prefix}.{name}" for name in names)


_ADMIN = (
    "region_name",
    "username",
    "project_name",
    "user_domain_name",
    "project_domain_name",
)


def identity(*accounts: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return required paths and public secrets of the identity endpoint."""
    auth = "endpoints.identity.auth"
    paths = ["endpoints.identity.namespace", *named(f"{auth}.admin", *_ADMIN)]
    public = {f"{auth}.admin.password": "password"}
    for account in accounts:
        paths += named(f"{auth}.{account}", "role", *_ADMIN)
        public[f"{auth}.{account}.password"] = "password"
    return tuple(paths), public


def backend(
    endpoint: str, *users: str, more: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return required paths and public secrets of a database or message bus."""
    base = f"endpoints.{endpoint}"
    paths = [f"{base}.namespace", *named(base, *more)]
    public = {}
    for user in users:
        paths.append(f"{base}.auth.{user}.username")
        public[f"{base}.auth.{user}.password"] = "password"
    return tuple(paths), public


def public_name(endpoint: str, port: str = "api") -> tuple[str, ...]:
    """Return the required paths of a public endpoint."""
    return named(
        f"endpoints.{endpoint}",
        "host_fqdn_override.public.host",
        "scheme.public",
        f"port.{port}.public",
    )


def database_jobs(chart: str, sync_image: str, *more: str) -> tuple[Job, ...]:
    """Return the hook Jobs that create a database; more: Jobs the second waits for."""
    sync = Needs(services=("oslo_db",), jobs=(f"{chart}-db-init", *more))
    return (
        Job(name=f"{chart}-db-init", image="db_init", weight=-5, needs=DATABASE),
        Job(name=f"{chart}-db-sync", image=sync_image, weight=-4, needs=sync),
    )


def account_jobs(
    chart: str, weights: tuple[int, int, int] = (-3, -2, -1)
) -> tuple[Job, ...]:
    """Return the hook Jobs for the service catalogue and the account in Keystone."""
    service, endpoints, user = weights
    after = Needs(services=("identity",), jobs=(f"{chart}-ks-service",))
    return (
        Job(
            name=f"{chart}-ks-service",
            image="ks_service",
            weight=service,
            needs=IDENTITY,
        ),
        Job(
            name=f"{chart}-ks-endpoints",
            image="ks_endpoints",
            weight=endpoints,
            needs=after,
        ),
        Job(name=f"{chart}-ks-user", image="ks_user", weight=user, needs=IDENTITY),
    )


def bus_job(chart: str) -> Job:
    """Return the hook Job that makes the user of the message bus."""
    needs = Needs(services=("oslo_messaging",))
    return Job(name=f"{chart}-rabbit-init", image="rabbit_init", weight=-4, needs=needs)


def joined(
    *parts: tuple[tuple[str, ...], Mapping[str, str]],
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return all required paths and all public secrets of some endpoints."""
    required: list[str] = []
    public: dict[str, str] = {}
    for paths, secrets in parts:
        required += paths
        public |= secrets
    return tuple(required), public


_STATEFUL_BUS = ("statefulset.name", "statefulset.replicas")


def service_values(
    chart: str,
    accounts: tuple[str, ...],
    databases: tuple[str, ...] = ("oslo_db",),
    *,
    bus: bool = True,
    cache_key: bool = True,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return what all charts of OpenStack services have in common."""
    parts = [identity(*accounts)]
    parts += [backend(name, "admin", chart) for name in databases]
    if bus:
        user = ("admin", chart)
        parts.append(backend("oslo_messaging", *user, more=_STATEFUL_BUS))
    required, public = joined(*parts)
    cache = ("endpoints.oslo_cache.namespace", "endpoints.cluster_domain_suffix")
    key = ("endpoints.oslo_cache.auth.memcache_secret_key",) if cache_key else ()
    return (*required, *cache, *key), public
