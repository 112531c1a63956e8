"""Instances of a simulated engine keep the contract of tests/contract/instances.py.

The engine is in this process; tests/lab/zvirt has one behind HTTPS.
"""

import time

import pytest

from lib.cloud.zvirt import client
from tests.contract import instances
from tests.harness.zvirt.vms_of_nodes import Ground, Vms
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.stage import Stage


class TestEngine(instances.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> instances.Ground:
        stage = Stage()
        access = client.EngineClient(
            lambda: SETTINGS, Simulated(stage), wall_clock=lambda: 1_700_000_000.0
        )
        return Ground(Vms(stage.service), access, time.monotonic)
