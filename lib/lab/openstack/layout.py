"""Where the lab's OpenStack keeps its things, and what its services are called."""

import dataclasses
import pathlib
from collections.abc import Mapping

from lib.lab import places
from lib.lab.openstack import install

KEYSTONE = "keystone"
GLANCE = "glance"
PLACEMENT = "placement"
NOVA = "nova"
NEUTRON = "neutron"
CINDER = "cinder"
OCTAVIA = "octavia"
SERVICES = (KEYSTONE, PLACEMENT, NEUTRON, NOVA, CINDER, OCTAVIA, GLANCE)
"""Every service, in the order of start: what others ask for first comes first."""
NODE_SERVICES = (KEYSTONE, PLACEMENT, NEUTRON, NOVA, GLANCE)
"""What instances and their addresses need; no volumes, no load balancers."""
DATABASE = "mariadb"
PORTS = places.cloud_ports(
    (KEYSTONE, GLANCE, PLACEMENT, NOVA, NEUTRON, CINDER, OCTAVIA, DATABASE)
)
"""The name of each program's port."""

COMPUTE_HOSTS = ("compute-1", "compute-2", "compute-3")
"""Fake hypervisors; each is an availability zone of its own: az1, az2, az3."""
ZONES = ("az1", "az2", "az3")
REGION = "RegionOne"
PASSWORD = "lab"  # noqa: S105 - of a cloud that listens on the loopback address only


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """Folders and addresses of one lab's OpenStack.

    Everything that a living service needs is below the lab's state or cache.
    """

    where: places.Places
    install: install.Install

    @property
    def root(self) -> pathlib.Path:
        """All of it."""
        return self.where.state / "openstack"

    @property
    def etc(self) -> pathlib.Path:
        """Configuration files, written at every start."""
        return self.root / "etc"

    @property
    def guest(self) -> pathlib.Path:
        """Our files that run with the lab's own Python."""
        return self.root / "guest"

    @property
    def data(self) -> pathlib.Path:
        """The database, images, keys: what a snapshot holds."""
        return self.root / "data"

    @property
    def keys(self) -> pathlib.Path:
        """Token keys and octavia's certificate authority."""
        return self.data / "keys"

    def url(self, service: str, path: str = "") -> str:
        """Return the address of a service's API."""
        return f"http://127.0.0.1:{self.port(service)}{path}"

    def port(self, program: str) -> int:
        """Return the port of a service, or of the database."""
        return self.where.port(PORTS[program])


def ports(where: places.Places) -> Mapping[str, int]:
    """Return the ports of this OpenStack in a lab, by program."""
    return {program: where.port(name) for program, name in PORTS.items()}


def of(where: places.Places) -> Layout:
    """Lay out the OpenStack of a lab; reads nothing but what the machine is."""
    return Layout(where, install.locate(where))


def attachments(where: places.Places, instance_id: str) -> pathlib.Path:
    """Return the folder in which Nova links the volumes of an instance.

    Source: `guest/lab_disks.py`.
    """
    return of(where).root / "disks/attachments" / instance_id
