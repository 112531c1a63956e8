"""Releases of the services and the gates between them.

A gate names a workload of another release that must be Ready before helm is run. It
never names a whole release, and there is none between neutron, nova, openvswitch and
libvirt: their pods wait for each other, so a gate among them would never open. Their
hook Jobs do not, hence the helm runs of that cycle also end one after the other, with
a single slot.
"""

from collections.abc import Collection

from lib.osdpl.api import model
from lib.osdpl.values import catalog
from lib.osdpl.values.services import database

RELEASES: dict[str, tuple[tuple[str, str], ...]] = {
    service.name: tuple((chart.release, chart.name) for chart in service.charts)
    for service in catalog.SERVICES
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

DATABASE = database.WORKLOAD
"""What the hook Jobs of a deletion need."""


def rank(release: str) -> int:
    """Return how early a release is started among those that can be: 0 is first.

    Those whose runs last longest are: they have the most hook Jobs, one after another.
    """
    chart = catalog.BY_RELEASE.get(release)
    return 0 if chart and chart.is_long else 1


def gates(release: str, services: Collection[str]) -> tuple[model.Workload, ...]:
    """Return the workloads of the enabled services that a release waits for."""
    workloads = (
        catalog.BY_NAME[service].workload
        for service in _needs(release)
        if service in services
    )
    return tuple(workload for workload in workloads if workload)


def service_gates(service: str) -> tuple[str, ...]:
    """Return the services that hold a gate of a service, without repetition."""
    gated: dict[str, None] = {}
    for release, _ in RELEASES.get(service, ()):
        gated.update((needed, None) for needed in _needs(release))
    return tuple(gated)


def requires(release: str) -> tuple[str, ...]:
    """Return the releases with the workloads that a release waits for.

    A release that is not known requires none.
    """
    if not _needs(release):
        return ()
    return tuple(
        name
        for service in service_gates(SERVICE_OF[release])
        for name, _ in RELEASES[service]
        if name != release
    )


def _needs(release: str) -> tuple[str, ...]:
    chart = catalog.BY_RELEASE.get(release)
    return chart.needs if chart else ()
