"""Where the services of a cloud are, and which versions of their APIs they have."""

import contextlib
import dataclasses

import keystoneauth1.discover
import keystoneauth1.exceptions
import keystoneauth1.session

from lib.cloud import errors
from lib.cloud.openstack import failures
from lib.cloud.openstack import session as sessions

Version = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """One service. silence: why it does not say its version, if it does not."""

    data: keystoneauth1.discover.EndpointData
    silence: str

    def version(self, operation: str, resource: str) -> Version:
        """Give the newest version that it offers. operation, resource: for the error.

        Raises:
            Unavailable: it does not say; then its URL leads nowhere, either.
        """
        if self.data.api_version is None:
            raise errors.Unavailable(
                self.silence, operation=operation, resource=resource
            )
        return tuple(int(part) for part in self.data.api_version)

    def microversion(self, least: Version, newest: Version) -> Version:
        """Choose the newest that it offers. least: if it does not say.

        Source: OpenStack API-SIG guideline "Microversion Specification".
        """
        offered = self.data.max_microversion or least
        return min(tuple(int(part) for part in offered), newest)


def find(
    session: keystoneauth1.session.Session,
    service: str,
    major: str,
    region: str,
    interface: str,
) -> Endpoint:
    """Find a service by its type; catalogue and versions are kept with the token.

    major: version of its API. region: empty for the only one.

    Raises:
        Unavailable: the catalogue has none. ClientException: there is no token.
    """
    data = None
    # ValueError: keystoneauth's answer where a service is under two of its old
    # names in the catalogue, and under none of them in our region.
    nothing = (keystoneauth1.exceptions.EndpointNotFound, ValueError)
    with sessions.failing(session) as failed, contextlib.suppress(*nothing):
        data = session.get_endpoint_data(
            service_type=service,
            interface=interface,
            region_name=region or None,
            min_version=f"{major}.0",
            max_version=f"{major}.latest",
        )
    if data is None or data.url is None:
        where = f"{interface} endpoint" + (f" in region {region}" if region else "")
        message = f"the catalogue has no {service} service with a {where}"
        raise errors.Unavailable(message, operation="find the service")
    return Endpoint(data, _silence(service, failed))


def _silence(service: str, failed: sessions.Failed) -> str:
    """Say why a service does not say its version. failed: how it answered."""
    if not failed:
        return f"the {service} service does not say its version"
    error = failed[-1]
    if isinstance(error, keystoneauth1.exceptions.HttpError):
        told = failures.describe(error.http_status)
    else:
        told = failures.from_native(error)[1]
    return f"{told} when the {service} service was asked for its version"
