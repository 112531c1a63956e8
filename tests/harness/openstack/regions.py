"""Regions of the lab's cloud behind proxies, so that each can fail by itself."""

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from openstack.identity.v3 import _proxy as identity_v3

from lib.lab import places
from lib.lab.openstack import accounts, cloud, layout
from lib.lab.run import ports
from tests.harness.faults import fault_proxy

PROXIED = (layout.KEYSTONE, layout.NOVA, layout.NEUTRON)
_PATHS = {layout.NOVA: "/v2.1", layout.NEUTRON: "", layout.OCTAVIA: ""}
_ROLES = ("member", "load-balancer_member")


class Region:
    """One region, for one user of its own in one project.

    services: that it has, Keystone among them. proxies: by service; all that the user
    does goes through them.
    """

    def __init__(
        self,
        where: places.Places,
        name: str,
        project: str,
        services: Sequence[str] = PROXIED,
    ) -> None:
        self.where = where
        self.name = name
        self.project = project
        self.user = f"{name}-{uuid.uuid4()}"
        self.proxies = {
            service: fault_proxy.Proxy(layout.ports(where)[service])
            for service in services
        }

    @contextlib.contextmanager
    def open(self, password: str) -> Iterator[None]:
        """Have proxies, catalogue and user while the block runs.

        Raises:
            LabError: the cloud does not answer.
        """
        with contextlib.ExitStack() as stack:
            for proxy in self.proxies.values():
                proxy.start()
                stack.callback(proxy.close)
            stack.callback(self._forget)
            self._make(password)
            yield

    def url(self, service: str) -> str:
        """Return the address of a service's proxy."""
        return f"http://{ports.LOOPBACK}:{self.proxies[service].port}"

    def calls(self) -> int:
        """Count the calls that came so far, to all services."""
        return sum(len(proxy.requests()) for proxy in self.proxies.values())

    def cloud_conf(self, password: str, timeout_s: float) -> str:
        """Return the text of a cloud.conf. timeout_s: of each call.

        Source: as `accounts.cloud_conf`, and [Metadata] request-timeout.
        """
        settings = {
            "auth-url": f"{self.url(layout.KEYSTONE)}/v3",
            "username": self.user,
            "password": password,
            "region": self.name,
            "tenant-name": self.project,
            "domain-id": "default",
        }
        rows = [f'{key} = "{value}"' for key, value in settings.items()]
        timeout = ["[Metadata]", f"request-timeout = {timeout_s:g}s"]
        return "\n".join(["[Global]", *rows, *timeout, ""])

    def set_password(self, password: str) -> None:
        """Set another password of the user, as an administrator does."""
        with self._identity() as identity:
            user = identity.find_user(self.user, ignore_missing=False)
            identity.update_user(user, password=password)

    def _make(self, password: str) -> None:
        with self._identity() as identity:
            identity.create_region(id=self.name)
            ids = {service.name: service.id for service in identity.services()}
            for service in self.proxies.keys() & _PATHS.keys():
                identity.create_endpoint(
                    service_id=ids[service],
                    interface="public",
                    url=self.url(service) + _PATHS[service],
                    region_id=self.name,
                )
            user = identity.create_user(
                name=self.user, password=password, domain_id="default"
            )
            project = identity.find_project(self.project, ignore_missing=False)
            for name in _ROLES:
                role = identity.find_role(name, ignore_missing=False)
                identity.assign_project_role_to_user(project, user, role)

    def _forget(self) -> None:
        """Remove user and region; what is not there is fine."""
        with self._identity() as identity:
            if user := identity.find_user(self.user):
                identity.delete_user(user)
            for endpoint in identity.endpoints(region_id=self.name):
                identity.delete_endpoint(endpoint)
            identity.delete_region(self.name, ignore_missing=True)

    @contextlib.contextmanager
    def _identity(self) -> Iterator[identity_v3.Proxy]:
        with (
            cloud.sentences(),
            contextlib.closing(cloud.connect(self.where, accounts.ADMIN)) as admin,
        ):
            yield cloud.identity_of(admin)
