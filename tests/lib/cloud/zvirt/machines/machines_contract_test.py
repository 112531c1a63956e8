"""Machines of a simulated engine keep the contract of tests/contract/machines.py."""

import pytest

from tests.contract import machines
from tests.contract.zvirt_machines import EngineMachines


class TestMachines(machines.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> machines.Ground:
        return EngineMachines()
