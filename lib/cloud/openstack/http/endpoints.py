"""Where the services of a cloud are, and which versions of their APIs they have."""

import contextlib
import dataclasses
from collections.abc import Mapping

import keystoneauth1.discover
import keystoneauth1.exceptions
import keystoneauth1.session
from keystoneauth1 import identity

from lib.cloud import errors
from lib.cloud.openstack.http import failures
from lib.cloud.openstack.http import session as sessions

Version = tuple[int, ...]
NEWEST_COMPUTE = (2, 60)
"""From 2.69 on servers may lack most of their parts."""
NEWEST_VOLUME = (3, 50)
"""Extends volumes in use (3.42), reports multiattach types (3.50).

Source, both: Nova's and Cinder's REST API version history.
"""
_MAJOR = {
    "compute": "2",
    "network": "2",
    "block-storage": "3",
    "image": "2",
    "load-balancer": "2",
    "key-manager": "1",
}
_NEWEST: Mapping[str, Version] = {
    "compute": NEWEST_COMPUTE,
    "block-storage": NEWEST_VOLUME,
}
_LEAST: Mapping[str, Version] = {"compute": (2, 1), "block-storage": (3, 0)}


class NotInCatalogue(errors.Unavailable):
    """The catalogue has no such service in this region and interface."""


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """One service. silence: why its version is unknown, if it is."""

    service: str
    data: keystoneauth1.discover.EndpointData
    silence: str

    def version(self, operation: str, resource: str) -> Version:
        """Return the newest version that it offers. operation, resource: for the error.

        Raises:
            Unavailable: it does not say; then its URL leads nowhere, either.
        """
        if self.data.api_version is None:
            raise errors.Unavailable(
                self.silence, operation=operation, resource=resource
            )
        return tuple(int(part) for part in self.data.api_version)

    def microversion(self, newest: Version | None) -> Version | None:
        """Choose the newest that we know, at most what the service offers.

        newest: one older than ours to go up to. None in a service without any.

        Source: OpenStack API-SIG guideline "Microversion Specification".
        """
        if self.service not in _NEWEST:
            return None
        offered = self.data.max_microversion or _LEAST[self.service]
        most = min(tuple(int(part) for part in offered), _NEWEST[self.service])
        return most if newest is None else min(most, newest)


def find(
    session: keystoneauth1.session.Session,
    service: str,
    region: str,
    interface: str,
) -> Endpoint:
    """Find a service by its type; catalogue and versions are kept with the token.

    region: empty for the only one.

    Raises:
        NotInCatalogue: none exists. Ambiguous: no region is named, and the service
        is in several. ClientException: there is no token.
    """
    if not region:
        _require_one_region(session, service, interface)
    data = None
    # ValueError: keystoneauth's answer where a service is under two of its old
    # names in the catalogue, and under none of them in our region.
    nothing = (keystoneauth1.exceptions.EndpointNotFound, ValueError)
    with sessions.failing(session) as failed, contextlib.suppress(*nothing):
        data = session.get_endpoint_data(
            service_type=service,
            interface=interface,
            region_name=region or None,
            min_version=f"{_MAJOR[service]}.0",
            max_version=f"{_MAJOR[service]}.latest",
        )
    if data is None or data.url is None:
        where = f"{interface} endpoint" + (f" in region {region}" if region else "")
        message = f"the catalogue has no {service} service with a {where}"
        raise NotInCatalogue(message, operation="find the service")
    return Endpoint(service, data, _silence(service, failed))


def _require_one_region(
    session: keystoneauth1.session.Session, service: str, interface: str
) -> None:
    """Check that a service is in one region: the first match may be another for each.

    Raises:
        Ambiguous: it is in several.
    """
    if not isinstance(session.auth, identity.BaseIdentityPlugin):
        return
    catalog = session.auth.get_access(session).service_catalog
    try:
        listed = catalog.get_endpoints_data(service_type=service, interface=interface)
    except ValueError:  # see `find`
        return
    regions = {data.region_name for each in listed.values() for data in each}
    if len(regions) > 1:
        names = ", ".join(sorted(str(name) for name in regions))
        message = (
            f"the {service} service is in several regions ({names}), and none is named:"
            " set region in [Global] of cloud.conf"
        )
        raise errors.Ambiguous(message, operation="find the service")


def _silence(service: str, failed: sessions.Failed) -> str:
    """Return why the version of a service is unknown. failed: how it answered."""
    if not failed:
        return f"the {service} service does not say its version"
    error = failed[-1]
    if isinstance(error, keystoneauth1.exceptions.HttpError):
        reason = failures.describe(error.http_status)
    else:
        reason = failures.from_native(error)[1]
    return f"the {service} service does not say its version: {reason}"
