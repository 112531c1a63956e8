"""What an upgrade to the charts of openstack-helm does to releases of the reference.

The rows follow from the charts and values of both; docs/migrate-osdpl.md has the same.
"""

import dataclasses
import enum
import re
from collections.abc import Mapping

_UPSTREAM = re.compile(r"20\d\d\.\d+\.\d+")
"""Versions of openstack-helm's charts, such as 2026.1.0 and 2026.1.3+1a2b3c4d."""


class Fate(enum.StrEnum):
    """What the annotation mooring.io/adopt does to a release."""

    ADOPTED = "adopted"
    REBUILT = "rebuilt"
    IMPOSSIBLE = "impossible"
    OWN = "already adopted"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """Fate of one release, and why."""

    release: str
    fate: Fate
    reason: str


DATABASE = "databases and passwords are kept; Deployments with other selectors have"
_PROGRAM = (
    Fate.ADOPTED,
    f"{DATABASE} to be deleted before (the condition names them)",
)
_AGENT = (
    Fate.ADOPTED,
    "DaemonSets with other selectors have to be deleted with `--cascade=orphan` before",
)
_STORE = (
    Fate.REBUILT,
    "claim templates cannot be changed: delete the StatefulSet with"
    " `--cascade=orphan`, or restore a backup into a new one",
)
_NO_CHART = (
    Fate.IMPOSSIBLE,
    "no chart in openstack-helm, or not supported yet; it is not changed",
)
FATES: Mapping[str, tuple[Fate, str]] = {
    **dict.fromkeys(
        (
            *("openstack-keystone", "openstack-glance", "openstack-placement"),
            *("openstack-nova", "openstack-neutron", "openstack-horizon"),
        ),
        _PROGRAM,
    ),
    **dict.fromkeys(("openstack-openvswitch", "openstack-libvirt"), _AGENT),
    "openstack-memcached": (
        Fate.REBUILT,
        "its Service becomes headless, which an installed one cannot: delete it"
        " before; sessions are lost",
    ),
    **dict.fromkeys(("openstack-mariadb", "openstack-rabbitmq", "etcd"), _STORE),
    **dict.fromkeys(
        (
            *("openstack-nova-rabbitmq", "openstack-neutron-rabbitmq"),
            *("openstack-glance-rabbitmq", "openstack-neutron-frrouting"),
            *("openstack-ipsec", "openstack-redis-operator"),
            *("openstack-app-gateway", "ingress-openstack"),
        ),
        _NO_CHART,
    ),
}
"""Fate and reason by release, if its chart is a fork of the reference."""


@dataclasses.dataclass(frozen=True, slots=True)
class Installed:
    """Installed release. is_own: osdpl-controller installed its newest revision."""

    release: str
    chart: str
    version: str
    is_own: bool


def judge(installed: Installed, openstack: str, supported: tuple[str, ...]) -> Row:
    """Return the fate of a release.

    openstack: version of the OpenStackDeployment. supported: versions of OpenStack
    that osdpl-controller installs.
    """
    name = installed.release
    if installed.is_own:
        return Row(name, Fate.OWN, "osdpl-controller installed it")
    fate, reason = FATES.get(name, _NO_CHART)
    if fate is Fate.IMPOSSIBLE:
        return Row(name, fate, reason)
    if openstack not in supported:
        text = f"OpenStack {openstack or 'without a version'}: upgrade with Rockoon to"
        return Row(name, Fate.IMPOSSIBLE, f"{text} {supported[0]} before")
    if _UPSTREAM.match(installed.version):
        text = f"chart {installed.chart} {installed.version} is of openstack-helm"
        return Row(name, Fate.ADOPTED, f"{text}; passwords are kept")
    return Row(name, fate, reason)
