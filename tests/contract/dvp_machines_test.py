"""DVP's machines on a parent in memory keep the contract.

tests/lab/dvp/dvp_machines_contract_test.py runs the same rows on a real API server.
"""

from collections.abc import Iterator

import pytest

from tests.contract import dvp_machines, machines


class TestMachines(machines.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> Iterator[machines.Ground]:
        ground = dvp_machines.in_memory(dvp_machines.MachineParent())
        yield ground
        ground.close()
