"""What the charts read from their values: one file per chart and generation.

The files under contracts/ list facts of openstack-helm's values.yaml: the keys of
images, replicas, labels and disruption budgets, the accounts and databases. A version
between two tags (2026.1.0 is a tag, 2026.1.7+ab12cd is not) may be of either
generation: its contract is the union of both, as charts ignore unknown values. So may
the newest tag: in a checkout all commits after it have its version.
"""

import functools
import importlib.resources
import re

import msgspec

from lib.process import config, decoding

GENERATIONS = ("2025.1", "2025.2", "2026.1", "later")
"""Generations with a folder of contracts, oldest first."""

_VERSION = re.compile(r"v?(\d{4})\.([12])\.(\d+)(?P<rest>[-+.].*)?")


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of the values of one chart.

    images: reference by key, {release} stands for the OpenStack release. labels:
    default label by component. accounts: role by account of the Identity service;
    null: the account belongs to the service of that name. databases: users by
    endpoint. manifests: switches of single objects.
    """

    images: dict[str, str]
    replicas: tuple[str, ...]
    disruption_budgets: tuple[str, ...]
    labels: dict[str, str]
    accounts: dict[str, str | None]
    databases: dict[str, tuple[str, ...]]
    messaging: bool
    cache_key: bool
    endpoints: tuple[str, ...]
    manifests: tuple[str, ...]


def generations(field: str, version: str) -> tuple[str, ...]:
    """Return the generations that a chart version may be of, oldest first.

    field: for the message.

    Raises:
        ConfigError: the version is malformed or older than every generation.
    """
    match = _VERSION.fullmatch(version)
    base = f"{match[1]}.{match[2]}" if match else ""
    if match is None or base < GENERATIONS[0]:
        expected = f"a version of openstack-helm from {GENERATIONS[0]}.0 on"
        raise config.ConfigError([config.FieldProblem(field, version, expected)])
    if base not in GENERATIONS:
        return GENERATIONS[-1:]
    index = GENERATIONS.index(base)
    is_tag = match[3] == "0" and not (match["rest"] or "").startswith("+")
    is_newest = base == GENERATIONS[-2]
    return GENERATIONS[index : index + 1 if is_tag and not is_newest else index + 2]


@functools.cache
def load(chart: str, generations: tuple[str, ...]) -> Contract:
    """Return the contract of a chart, the union of that of several generations."""
    contracts = [_read(chart, generation) for generation in generations]
    union = contracts[0]
    for newer in contracts[1:]:
        union = _union(union, newer)
    return union


def _union(older: Contract, newer: Contract) -> Contract:
    return Contract(
        images=older.images | newer.images,
        replicas=_join(older.replicas, newer.replicas),
        disruption_budgets=_join(older.disruption_budgets, newer.disruption_budgets),
        labels=older.labels | newer.labels,
        accounts=older.accounts | newer.accounts,
        databases=older.databases | newer.databases,
        messaging=older.messaging or newer.messaging,
        cache_key=older.cache_key or newer.cache_key,
        endpoints=_join(older.endpoints, newer.endpoints),
        manifests=_join(older.manifests, newer.manifests),
    )


def _join(older: tuple[str, ...], newer: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*older, *newer}))


def _read(chart: str, generation: str) -> Contract:
    folder = importlib.resources.files("lib.osdpl.values") / "contracts" / generation
    return decoding.decode((folder / f"{chart}.json").read_bytes(), Contract)
