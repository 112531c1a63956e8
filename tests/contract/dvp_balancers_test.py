"""DVP's load balancers on a fake parent keep the contract, with each kind of object.

tests/lab/dvp/balancers_test.py runs the same rows on a real API server.
"""

import time
from collections.abc import Iterator

import pytest

from lib.cloud.load_balancers import Node
from tests.contract import load_balancers
from tests.contract.dvp_balancers import FakeParent, ParentBalancers


def ground_of(*, serves_checked: bool) -> ParentBalancers:
    fake = FakeParent(serves_checked=serves_checked)
    for host in ("node-1", "node-2"):
        fake.add_vm(host)
    nodes = (Node("node-1", "dvp://node-1"), Node("node-2"))
    return ParentBalancers(fake, nodes, lambda seconds: time.sleep(min(seconds, 0.05)))


class TestServices(load_balancers.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> Iterator[load_balancers.Ground]:
        ground = ground_of(serves_checked=False)
        yield ground
        ground.close()


class TestServicesWithHealthchecks(load_balancers.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> Iterator[load_balancers.Ground]:
        ground = ground_of(serves_checked=True)
        yield ground
        ground.close()
