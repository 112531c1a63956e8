"""Annotations whose keys are misspelt are reported, with the nearest known key."""

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import unknown
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason

OPENSTACK = "loadbalancer.openstack.org"
MISSPELT = {
    "a letter is missing": (f"{OPENSTACK}/conection-limit", keys.CONNECTION_LIMIT),
    "an underscore": (f"{OPENSTACK}/proxy_protocol", keys.PROXY_PROTOCOL),
    "in capitals": (f"{OPENSTACK}/Flavor-ID", keys.FLAVOR_ID),
    "a word more": (f"{OPENSTACK}/health-monitor-delay-s", keys.MONITOR_DELAY),
    "of another prefix": (
        f"{OPENSTACK}/openstack-internal-load-balancer",
        keys.INTERNAL,
    ),
    "a name of OpenStack under Deckhouse's prefix": (
        "loadbalancer.openstack.deckhouse.io/flavor-id",
        keys.FLAVOR_ID,
    ),
    "a typo under the prefix that clouds share": (
        "service.beta.kubernetes.io/openstack-internal-loadbalancer",
        keys.INTERNAL,
    ),
    "the prefix without beta": (
        "service.kubernetes.io/openstack-internal-load-balancer",
        keys.INTERNAL,
    ),
    "a typo in the prefix": ("loadbalancers.openstack.org/class", keys.CLASS),
    "the consent to a deletion": (
        "mooring.io/confirm-deletoin",
        "mooring.io/confirm-deletion",
    ),
    "a word of the reference's page that its code lacks": (
        f"{OPENSTACK}/floating-tag",
        keys.FLOATING_SUBNET_TAGS,
    ),
    "nothing is near": (f"{OPENSTACK}/zzz", ""),
    "no name": (f"{OPENSTACK}/", ""),
}
OTHERS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "meta.helm.sh/release-name",
    "service.beta.kubernetes.io/aws-load-balancer-type",
    "service.beta.kubernetes.io/aws-load-balancer-internal",
    "service.beta.kubernetes.io/azure-load-balancer-internal",
    "load-balancer.hetzner.cloud/hostname",
    "cert-manager.io/class",
    "example.org/class",
    "class",
    "",
    "mooring.io/other",
    "metallb.universe.tf/loadBalancerIPs",
)
"""Of other tools, and of clouds that a chart serves as well."""


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_key_is_reported_with_the_nearest(name: str) -> None:
    key, nearest = MISSPELT[name]
    (problem,) = unknown.problems([key, *OTHERS, *unknown.KNOWN])
    assert problem.reason is OctaviaReason.UNKNOWN_ANNOTATION
    assert not problem.is_fatal
    hint = f" (did you mean {nearest}?)" if nearest else ""
    assert problem.message == f"unknown annotations, which are ignored: {key}{hint}"


def test_known_keys_and_those_of_others_are_not_reported() -> None:
    assert unknown.problems([*OTHERS, *unknown.KNOWN]) == []


def test_thousands_are_one_short_message() -> None:
    many = [f"{OPENSTACK}/x-{number}" for number in range(5000)]
    many += [f"mooring.io/confirm-deletio{number}" for number in range(5000)]
    (problem,) = unknown.problems(many)
    assert len(problem.message) < 400
    compared = unknown.MOST_COMPARED
    assert problem.message.endswith(f", and {5000 + compared - 3} more")
