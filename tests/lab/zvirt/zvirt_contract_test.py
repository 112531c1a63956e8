"""Instances of a served engine keep the contract of tests/contract/instances.py.

The engine is behind HTTPS, with the client that components use.
"""

from collections.abc import Iterator

import pytest

from lib.cloud.zvirt import client, config, http
from lib.lab.zvirt import server
from tests.contract import instances
from tests.harness.zvirt.vms_of_nodes import Ground, Vms
from tests.lib.lab.zvirt.served import serving


class TestEngine(instances.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(
        cls, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[instances.Ground]:
        folder = tmp_path_factory.mktemp("engine")
        with serving(folder, "delay * 0.02") as engine:
            ca = (engine.folder / server.CA).read_text()
            user = "admin@internal"
            settings = config.EngineConfig(engine.url, user, engine.password, ca)
            access = client.EngineClient(lambda: settings, http.connect(settings))
            yield Ground(Vms(engine.service), access)
