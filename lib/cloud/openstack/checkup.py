"""What OpenStack reports: authentication, services with their versions, quotas.

Implements `lib.cloud.checkup.Checkup`. One call each, nothing is tried twice.
"""

import contextlib
import datetime
import email.utils
from collections.abc import Callable, Iterator, Mapping, Sequence

import keystoneauth1.access
import keystoneauth1.discover
import keystoneauth1.exceptions
import keystoneauth1.session
import msgspec
from keystoneauth1 import identity

from lib.cloud import checkup, errors
from lib.cloud.openstack import quotas
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.http import client, endpoints, failures, session
from lib.cloud.openstack.load_balancers import checkup as balancing
from lib.cloud.openstack.routes import checkup as routing
from lib.cloud.support import calls
from lib.process import decoding

_MAJOR = {"compute": 2, "network": 2, "load-balancer": 2, "block-storage": 3}
"""Every service that some daemon uses, and the version of its API."""
_NEEDED = ("compute", "network")
_NAMES_FLAVORS = (2, 47)
"""Source: Nova API microversion history."""

REMEDIES = checkup.Remedies(
    credentials=(
        "correct the credentials in cloud.conf: user, project or domain may be"
        " misspelt, the user may have no role in the project, a password may have"
        " expired, an application credential may have been deleted"
    ),
    unreachable=(
        "see that auth-url is right and can be reached from here: name, port, proxy,"
        " certificate"
    ),
    project="name the project in cloud.conf: tenant-id, or tenant-name",
    endpoint="see that region and os-endpoint-type in cloud.conf are right",
    internal="set internal-lb to true",
    region="see that region in cloud.conf is right",
    no_region="run the daemon of the other region with SKIP_NODE_DELETION",
    mixed=(
        "harmless in one region; keep OS_CCM_REGIONAL the same for all daemons from"
        " now on"
    ),
    reader=(
        "assign the role member, or load-balancer_member where Octavia has roles of its"
        " own (docs/reference/cloud-permissions.md)"
    ),
)
"""What an operator does about faults, in the words of cloud.conf and of the daemon."""

_READERS = frozenset(
    {
        "reader",
        "auditor",
        "load-balancer_observer",
        "load-balancer_global_observer",
        "load-balancer_quota_admin",
    }
)
"""Roles that only read. Sources: Keystone's default roles; Octavia's policies."""
Endpoint = keystoneauth1.discover.EndpointData


class _Credential(msgspec.Struct, frozen=True):
    expires_at: datetime.datetime | None = None


class _Expiring(msgspec.Struct, frozen=True):
    application_credential: _Credential


class OpenStackCheckup:
    """Asks the services of one cloud.conf."""

    def __init__(self, config: Config, timeout_s: float) -> None:
        """timeout_s: of every single call.

        Raises:
            ConfigError: a certificate file can't be read.
        """
        self._config = config
        credentials = config.credentials
        self._where = client.Where(credentials.region, credentials.endpoint_type)
        self._session = session.open_session(
            credentials, timeout_s, ("mooring-doctor",)
        )

    @property
    def region(self) -> str:
        """See the protocol."""
        return self._where.region

    @property
    def warnings(self) -> tuple[str, ...]:
        """See the protocol."""
        insecure = "tls-insecure is on: a man in the middle can read the password"
        return self._config.warnings + (
            (insecure,) if self._config.credentials.tls_insecure else ()
        )

    def time(self) -> datetime.datetime | None:
        """See the protocol: the Date of Keystone's answer."""
        with _translated("reach Keystone"):
            answer = self._session.get(
                self._config.credentials.auth_url,
                authenticated=False,
                raise_exc=False,
                log=False,
            )
        return _date(answer.headers.get("Date", ""))

    def login(self) -> checkup.Login:
        """See the protocol."""
        access = self._access()
        roles = tuple(sorted(access.role_names or ()))
        return checkup.Login(
            access.username or access.user_id or "",
            access.project_name or access.project_id or "",
            self._expiry(access),
            roles,
            bool(roles) and {role.lower() for role in roles} <= _READERS,
        )

    def _expiry(
        self, access: keystoneauth1.access.AccessInfo
    ) -> datetime.datetime | None:
        """Return when an application credential expires; None: never, or it is none.

        A user may read its own ones. Source: Keystone API v3, show application
        credential details.
        """
        own_id = getattr(access, "application_credential_id", None)  # of version 3
        if not own_id:
            return None
        base = self._config.credentials.auth_url.rstrip("/").removesuffix("/v3")
        path = f"v3/users/{access.user_id}/application_credentials/{own_id}"
        try:
            with _translated("read the application credential"):
                body = self._get(f"{base}/{path}")
            read = decoding.decode(body, _Expiring).application_credential
        except (errors.CloudError, msgspec.DecodeError):
            return None
        return read.expires_at

    def services(self) -> tuple[checkup.ServiceEndpoint, ...]:
        """See the protocol."""
        access = self._access()
        return tuple(self._service(kind, access) for kind in _MAJOR)

    def quotas(self) -> checkup.Quotas:
        """See the protocol."""
        access = self._access()
        project = access.project_id or ""
        asked: Mapping[str, Callable[[str], tuple[checkup.Quota, ...]]] = {
            "compute": lambda url: quotas.of_nova(self._get(f"{url}/limits")),
            "network": lambda url: quotas.of_neutron(
                self._get(f"{url}/quotas/{project}/details")
            ),
            "load-balancer": lambda url: quotas.of_octavia(
                self._get(f"{url}/lbaas/quotas/{project}"),
                self._get(f"{url}/lbaas/loadbalancers?fields=id&project_id={project}"),
            ),
            "block-storage": lambda url: quotas.of_cinder(self._get(f"{url}/limits")),
        }
        return {
            kind: self._quota(kind, read)
            for kind, read in asked.items()
            if self._offered(kind, access)
        }

    def balancing(self) -> checkup.Balancing | None:
        """See the protocol.

        Other than the calls above, a GET answered with Retry-After may be repeated.
        """
        if not self._config.load_balancer.enabled:
            return None
        self._access()
        api = client.Client(self._session, self._where, calls.ignore)
        return balancing.look(api, self._config.load_balancer)

    def rights(self) -> tuple[checkup.ComponentRights, ...]:
        """See the protocol: policies cannot be asked for."""
        return ()

    def offered(self) -> checkup.Offered:
        """See the protocol: no object of a cluster is checked."""
        return {}

    def routing(self) -> checkup.Routing | None:
        """See the protocol."""
        router_id = self._config.router_id
        if not router_id or self._config.address_pairs_only:
            return None
        self._access()
        api = client.Client(self._session, self._where, calls.ignore)
        return routing.read(api, router_id)

    def _access(self) -> keystoneauth1.access.AccessInfo:
        auth = self._session.auth
        if not isinstance(auth, identity.BaseIdentityPlugin):
            raise TypeError("this package authenticates to Keystone only")
        with _translated("authenticate"):
            return auth.get_access(self._session)

    def _offered(self, kind: str, access: keystoneauth1.access.AccessInfo) -> str:
        """Return a service's URL in the catalogue; empty when it has none."""
        try:
            url = access.service_catalog.url_for(
                service_type=kind,
                interface=self._where.interface,
                region_name=self._where.region or None,
            )
        except (keystoneauth1.exceptions.CatalogException, ValueError):
            # ValueError: it is under two of its old names, but not in our region.
            return ""
        return str(url or "")

    def _service(
        self, kind: str, access: keystoneauth1.access.AccessInfo
    ) -> checkup.ServiceEndpoint:
        needed = kind in _NEEDED
        url = self._offered(kind, access)
        if not url:
            return checkup.ServiceEndpoint(kind, needed)
        try:
            data = self._endpoint(kind, url)
        except errors.CloudError as error:
            return checkup.ServiceEndpoint(kind, needed, url, error=error)
        return checkup.ServiceEndpoint(
            kind, needed, url, _versions(data), _odd(kind, data)
        )

    def _endpoint(self, kind: str, url: str) -> Endpoint:
        """Reach a service, then ask it for its versions."""
        operation = f"reach the {kind} service"
        with _translated(operation):
            answer = self._session.get(url, raise_exc=False, log=False)
            if answer.status_code >= 500:
                reason = failures.describe(answer.status_code)
                raise errors.Unavailable(reason, operation=operation, resource=url)
            data = self._session.get_endpoint_data(
                service_type=kind,
                interface=self._where.interface,
                region_name=self._where.region or None,
                min_version=f"{_MAJOR[kind]}.0",
                max_version=f"{_MAJOR[kind]}.latest",
            )
        if data is None or data.url is None or data.api_version is None:
            reason = f"it does not offer version {_MAJOR[kind]} of its API"
            raise errors.Unavailable(reason, operation=operation, resource=url)
        return data

    def _quota(
        self, kind: str, read: Callable[[str], tuple[checkup.Quota, ...]]
    ) -> tuple[checkup.Quota, ...] | errors.CloudError:
        operation = f"read the quotas of the {kind} service"
        try:
            with _translated(operation):
                data = self._session.get_endpoint_data(
                    service_type=kind,
                    interface=self._where.interface,
                    region_name=self._where.region or None,
                    min_version=f"{_MAJOR[kind]}.0",
                    max_version=f"{_MAJOR[kind]}.latest",
                )
                return read(str(data.url).rstrip("/") if data else "")
        except errors.CloudError as error:
            return error
        except (msgspec.DecodeError, UnicodeDecodeError):
            reason = "the answer is not what the service promises"
            return errors.Unavailable(reason, operation=operation)

    def _get(self, url: str) -> bytes:
        answer = self._session.get(url, raise_exc=False, log=False)
        if answer.status_code == 200:
            return answer.content
        kind = failures.from_status(answer.status_code, False)
        reason = failures.describe(answer.status_code)
        raise kind(reason, operation="GET", resource=url)


@contextlib.contextmanager
def _translated(operation: str) -> Iterator[None]:
    try:
        yield
    except (keystoneauth1.exceptions.ClientException, OSError) as error:
        kind, reason = failures.from_native(error)
        raise kind(reason, operation=operation) from error


def _date(header: str) -> datetime.datetime | None:
    """Parse a Date header, which is always in GMT; None if it is malformed.

    Source: RFC 9110, 6.6.1.
    """
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    return at.astimezone(datetime.UTC) if at.tzinfo else at.replace(tzinfo=datetime.UTC)


def _versions(data: Endpoint) -> str:
    """Write "2.1, microversions 2.1 to 2.96", or only the former."""
    version = _dotted(data.api_version)
    if not data.max_microversion:
        return version
    least, most = _dotted(data.min_microversion), _dotted(data.max_microversion)
    return f"{version}, microversions {least} to {most}"


def _dotted(version: Sequence[float] | None) -> str:
    return ".".join(map(str, version or ()))


def _odd(kind: str, data: Endpoint) -> str:
    if kind != "compute":
        return ""
    most = tuple(data.max_microversion or (2, 1))
    least = tuple(data.min_microversion or (2, 1))
    if least > endpoints.NEWEST_COMPUTE:
        newest = _dotted(endpoints.NEWEST_COMPUTE)
        return f"unsupported: the cloud requires a microversion above {newest}"
    if most < _NAMES_FLAVORS:
        return "below 2.47 the names of flavors cost one more list"
    return ""
