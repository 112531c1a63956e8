"""Releases of the services and the gates between them.

A gate names a workload of another release that must be Ready before helm is run. It
never names a whole release, and there is none between neutron, nova, openvswitch and
libvirt: their pods wait for each other, so a gate among them would never open. Their
hook Jobs do not, hence the helm runs of that cycle also end one after the other, with
a single slot.
"""

from collections.abc import Collection

from lib.osdpl.api import model

RELEASES: dict[str, tuple[tuple[str, str], ...]] = {
    "database": (("openstack-mariadb", "mariadb"),),
    "messaging": (("openstack-rabbitmq", "rabbitmq"),),
    "memcached": (("openstack-memcached", "memcached"),),
    "coordination": (("etcd", "etcd"),),
    "identity": (("openstack-keystone", "keystone"),),
    "image": (("openstack-glance", "glance"),),
    "placement": (("openstack-placement", "placement"),),
    "networking": (
        ("openstack-openvswitch", "openvswitch"),
        ("openstack-neutron", "neutron"),
    ),
    "compute": (("openstack-libvirt", "libvirt"), ("openstack-nova", "nova")),
    "dashboard": (("openstack-horizon", "horizon"),),
}
"""Release and chart by service, in the order of installation."""

SERVICE_OF = {
    release: service
    for service, releases in RELEASES.items()
    for release, _ in releases
}
"""Service by release."""

CHARTS = {
    service: tuple(chart for _, chart in releases)
    for service, releases in RELEASES.items()
}

UPGRADE_ORDER = (
    *("identity", "placement", "image", "networking", "compute", "block-storage"),
    *("load-balancer", "dns", "key-manager", "orchestration", "dashboard"),
    *("object-storage", "instance-ha", "shared-file-system"),
)
"""Services in the order in which another OpenStack version reaches them.

All other services follow in parallel. Source: the reference, osdpl upgrade."""

_MARIADB = model.Workload(kind=model.Kind.STATEFUL_SET, name="mariadb-server")
_RABBITMQ = model.Workload(
    kind=model.Kind.STATEFUL_SET, name="openstack-rabbitmq-rabbitmq"
)
_MEMCACHED = model.Workload(
    kind=model.Kind.STATEFUL_SET, name="openstack-memcached-memcached"
)
_KEYSTONE = model.Workload(kind=model.Kind.DEPLOYMENT, name="keystone-api")

DATABASE = _MARIADB
"""What the hook Jobs of a deletion need."""

_STATE = (("database", _MARIADB), ("memcached", _MEMCACHED))
_BUS = (("messaging", _RABBITMQ),)
_API = (("identity", _KEYSTONE),)

_GATES: dict[str, tuple[tuple[str, model.Workload], ...]] = {
    "openstack-keystone": (*_STATE, *_BUS),
    "openstack-glance": (*_STATE, *_BUS, *_API),
    "openstack-placement": (*_STATE, *_API),
    "openstack-neutron": (*_STATE, *_BUS, *_API),
    "openstack-nova": (*_STATE, *_BUS, *_API),
    "openstack-horizon": (*_STATE, *_API),
}


_LONGEST = ("openstack-nova", "openstack-neutron")
"""Releases whose runs last longest: they have the most hook Jobs, one after another."""


def rank(release: str) -> int:
    """Return how early a release is started among those that can be: 0 is first."""
    return 0 if release in _LONGEST else 1


def gates(release: str, services: Collection[str]) -> tuple[model.Workload, ...]:
    """Return the workloads of the enabled services that a release waits for."""
    return tuple(
        workload for service, workload in _GATES.get(release, ()) if service in services
    )


def service_gates(service: str) -> tuple[str, ...]:
    """Return the services that hold a gate of a service, without repetition."""
    gated: dict[str, None] = {}
    for release, _ in RELEASES.get(service, ()):
        gated.update((needed, None) for needed, _ in _GATES.get(release, ()))
    return tuple(gated)


def requires(release: str) -> tuple[str, ...]:
    """Return the releases with the workloads that a release waits for.

    A release that is not known requires none.
    """
    if release not in _GATES:
        return ()
    return tuple(
        name
        for service in service_gates(SERVICE_OF[release])
        for name, _ in RELEASES[service]
        if name != release
    )
