"""OpenStack's load balancers on the fake Octavia keep the contract.

tests/lab/services/load_balancers_contract_test.py runs the same rows on the real one.
"""

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from tests.contract import load_balancers
from tests.contract.octavia import Octavia


class TestOctavia(load_balancers.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> load_balancers.Ground:
        on = driver.ground()
        nodes = tuple(on.node(number) for number in (1, 2))
        config = settings.LoadBalancer(
            subnet_id=on.subnet_id, floating_network_id=on.external_id
        )
        return Octavia(on.cloud.client(), config, nodes, on.cloud.clock.sleep)
