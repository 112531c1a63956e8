"""Each fault of an engine at each call of Nodes and of the catalog: tables.

Nodes of VMs survive, no other state is written, and all ends as without the fault.
"""

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lib.cloud import catalog
from lib.cloud.model import Seen, Unknown
from lib.cloud.zvirt import disk_tags
from lib.cloud.zvirt.catalog.cloud import EngineCatalog
from lib.lab.zvirt import seed, settings
from tests.harness.nodes import walk
from tests.harness.zvirt import engine_faults
from tests.lib.cloud.zvirt.engines import Simulated, engine
from tests.lib.cloud.zvirt.instances import engine_and_child
from tests.lib.lab.zvirt.stage import Stage

ROUNDS = 5
"""Of a fault: longer than an absence is confirmed for."""
PAUSE_S = 900.0
"""After which a rejected password is certainly sent again."""
NODE_CALLS: Mapping[str, str] = {
    "a token": "POST sso/oauth/token",
    "the root of the API": "GET api",
    "the list of VMs": "GET api/vms",
    "a VM": "GET api/vms/*",
    "a cluster": "GET api/clusters/*",
    "the list of clusters": "GET api/clusters",
    "the list of templates": "GET api/templates",
}
CATALOG_CALLS: Mapping[str, str] = {
    "a token": "POST sso/oauth/token",
    "the list of data centers": "GET api/datacenters",
    "a data center": "GET api/datacenters/*",
    "the domains of a data center": "GET api/datacenters/*/storagedomains",
    "a domain": "GET api/storagedomains/*",
    "the list of disks": "GET api/disks",
}
OWN = frozenset({"new-1", "new-2", "steady", "off", "back", "static"})
"""Nodes of VMs that exist, and one of another cloud."""
Break = Callable[[Stage], None]


def rule(text: str, call: str) -> Break:
    line = text.format(call)
    return lambda stage: stage.engine.settings.replace([line])


def cells(calls: Mapping[str, str]) -> dict[tuple[str, str], Break]:
    """Return each fault at each call, and the faults of the whole engine."""
    table: dict[tuple[str, str], Break] = {
        (name, fault): rule(text, call)
        for name, call in calls.items()
        for fault, text in engine_faults.FAULTS.items()
    }
    return table | {("all calls", name): of for name, of in engine_faults.WHOLE.items()}


def test_each_rule_of_the_engine_has_a_row() -> None:
    rules = {text.split()[0] for text in engine_faults.FAULTS.values()}
    assert rules >= set(settings.HTTP_FAULTS) | {"forbid"}
    known = rules | {"hide", "version"} | engine_faults.NOT_OF_READS
    assert known == set(settings.RULE_NAMES)


# Nodes.


@pytest.fixture(scope="module")
def undisturbed() -> engine_and_child.Ground:
    ground = engine_and_child.everything()
    walk.settle(ground, walk.SETTINGS)
    return ground


def of_the_table(calls: Mapping[str, str], kind: str) -> bool:
    method, path = kind.split(" ", 1)
    return any(
        fnmatch.fnmatchcase(f"{method} {path}", pattern) for pattern in calls.values()
    )


def test_each_call_of_nodes_has_a_row(undisturbed: engine_and_child.Ground) -> None:
    called = {request.replace("/ovirt-engine/", "") for request in undisturbed.sent}
    print(sorted(called))
    assert [kind for kind in called if not of_the_table(NODE_CALLS, kind)] == []
    unused = [
        name
        for name, pattern in NODE_CALLS.items()
        if not any(fnmatch.fnmatchcase(kind, pattern) for kind in called)
    ]
    assert unused == []


def names(ground: engine_and_child.Ground) -> set[str]:
    return set(ground.state())


@pytest.mark.parametrize("is_new", [False, True], ids=["running", "just started"])
def test_no_node_is_lost_whatever_fails(
    is_new: bool, undisturbed: engine_and_child.Ground
) -> None:
    """Of a process that has observed its VMs, and of one that starts in the fault."""
    expected: Mapping[str, Any] = undisturbed.state()
    for (call, fault), make in cells(NODE_CALLS).items():
        ground = engine_and_child.everything()
        process = walk.NodesProcess(ground, walk.SETTINGS)
        if not is_new:
            process.round()
        make(ground.stage)
        if is_new:
            process = walk.NodesProcess(ground, walk.SETTINGS)
        for _ in range(ROUNDS):
            process.round()
        left = names(ground)
        actions = dict(ground.actions)
        engine_faults.mend(ground.stage)
        ground.now_s += PAUSE_S
        for _ in range(2 * ROUNDS):
            process.round()
        print(f"{call:24} {fault:42} {len(left)} Nodes, {actions}")
        assert left >= OWN, (call, fault)
        assert ground.state() == expected, (call, fault)


# The catalog.


class Offers:
    """One engine with a disk of a cluster, and its catalog."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.now_s = 0.0
        more = f"<description>{disk_tags.tag('own')}</description>"
        self.stage.new_disk("pvc-1", more)
        self.exchange = Simulated(self.stage)
        self.catalog = EngineCatalog(engine(self.exchange, lambda: self.now_s))

    def read(self) -> tuple[object, ...]:
        """Read all parts, and one domain, as values; Unknown as its error."""
        request = catalog.CatalogRequest(self.catalog.parts, {}, "own")
        reading = self.catalog.read(request)
        domain = self.catalog.has_storage_type(seed.identifier(seed.NFS))
        parts = (reading.document, reading.storage_types, reading.volumes, domain)
        self.now_s += 3600.0
        return parts


def test_each_call_of_the_catalog_has_a_row() -> None:
    offers = Offers()
    offers.read()
    called = {kind.replace("/ovirt-engine/", "") for kind in offers.exchange.requests}
    absent = offers.catalog.has_storage_type("00000000-0000-4000-9000-000000000000")
    assert absent == Seen(False)
    called |= {kind.replace("/ovirt-engine/", "") for kind in offers.exchange.requests}
    print(sorted(called))
    assert [kind for kind in called if not of_the_table(CATALOG_CALLS, kind)] == []


def test_the_catalog_reports_nothing_wrong_whatever_fails() -> None:
    """A part is as it was, or unknown; a domain that exists is never absent."""
    expected = Offers().read()
    assert all(isinstance(part, Seen) for part in expected)
    for (call, fault), make in cells(CATALOG_CALLS).items():
        offers = Offers()
        offers.read()
        make(offers.stage)
        parts = [offers.read() for _ in range(2)]
        engine_faults.mend(offers.stage)
        offers.now_s += PAUSE_S
        shown = ", ".join(
            "as before" if part == before else "unknown"
            for part, before in zip(parts[-1], expected, strict=True)
        )
        print(f"{call:30} {fault:42} {shown}")
        for read in parts:
            for part, before in zip(read, expected, strict=True):
                is_hidden = fault.startswith("all permissions") and part == Seen(())
                ok = part == before or isinstance(part, Unknown) or is_hidden
                assert ok, (call, fault, part)
        assert offers.read() == expected, (call, fault)
