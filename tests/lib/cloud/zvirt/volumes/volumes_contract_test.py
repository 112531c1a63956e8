"""Volumes of a simulated engine keep the contract of tests/contract/volumes.py.

The engine is in this process; tests/lab/zvirt has one behind HTTPS.
"""

import time

import pytest

from lib.cloud.zvirt import client
from tests.contract import volumes
from tests.harness.zvirt.disks_of_cluster import Ground
from tests.harness.zvirt.vms_of_nodes import Vms
from tests.lib.cloud.zvirt.engines import SETTINGS, Simulated
from tests.lib.lab.zvirt.stage import Stage


class TestEngine(volumes.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> volumes.Ground:
        stage = Stage()
        access = client.EngineClient(
            lambda: SETTINGS,
            Simulated(stage),
            clock=time.monotonic,
            wall_clock=lambda: 1_700_000_000.0,
        )
        return Ground(Vms(stage.service), access, time.monotonic)
