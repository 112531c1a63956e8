"""Instances, volumes and catalog of a served engine keep their contracts.

The engine is behind HTTPS, with the client that components use.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from lib.cloud.catalog import StorageType
from lib.cloud.zvirt import client, config, disk_tags, http
from lib.cloud.zvirt.catalog.cloud import EngineCatalog
from lib.lab.zvirt import seed, server
from tests.contract import catalog, instances, volumes
from tests.harness.zvirt import disks_of_cluster
from tests.harness.zvirt.vms_of_nodes import Ground, Vms
from tests.lib.lab.zvirt.served import Served, serving
from tests.lib.lab.zvirt.stage import ABSENT, disk_body


def client_of(engine: Served) -> client.EngineClient:
    ca = (engine.folder / server.CA).read_text()
    user = "admin@internal"
    settings = config.EngineConfig(engine.url, user, engine.password, ca)
    return client.EngineClient(lambda: settings, http.connect(settings))


class CatalogGround:
    """Implements the `Ground` of the contract of a catalog."""

    installer_document: Mapping[str, object] = MappingProxyType({"zones": ["zone-1"]})
    storage_type = StorageType(seed.NFS, seed.identifier(seed.NFS))
    no_type = ABSENT

    def __init__(self, engine: Served) -> None:
        self.catalog = EngineCatalog(client_of(engine))
        self._engine = engine

    def add_volume(self, name: str, cluster_id: str) -> str:
        more = f"<description>{disk_tags.tag(cluster_id)}</description>"
        body = disk_body(name, more)
        self._engine.ask(do="request", method="POST", path="disks", body=body)
        self._engine.ask(do="advance", seconds=10)
        disks = self._engine.service.engine.records.all("disk")
        (disk,) = (row.key for row in disks if row.entity.alias == name)
        return disk


class TestCatalog(catalog.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(
        cls, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[catalog.Ground]:
        folder = tmp_path_factory.mktemp("engine")
        with serving(folder, "delay * 0.02") as engine:
            yield CatalogGround(engine)


class TestEngine(instances.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(
        cls, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[instances.Ground]:
        folder = tmp_path_factory.mktemp("engine")
        with serving(folder, "delay * 0.02") as engine:
            yield Ground(Vms(engine.service), client_of(engine))


class TestVolumes(volumes.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(
        cls, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[volumes.Ground]:
        folder = tmp_path_factory.mktemp("engine")
        with serving(folder, "delay * 0.02") as engine:
            yield disks_of_cluster.Ground(Vms(engine.service), client_of(engine))
