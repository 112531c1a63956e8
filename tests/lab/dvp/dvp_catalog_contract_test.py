"""The catalog of a simulated parent keeps the contract of tests/contract/catalog.py."""

from collections.abc import Iterator, Mapping

import pytest

from lib.cloud.catalog import StorageType
from lib.cloud.dvp import config
from lib.cloud.dvp import parent as access
from lib.cloud.dvp.catalog import cloud
from lib.cloud.dvp.volumes import disk_names
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import DISKS
from lib.lab.dvp.project import Project
from tests.contract import catalog
from tests.harness.dvp.dvp_parent import DvpParent


class Parent:
    """A project of the parent, and the catalog of its user."""

    installer_document: Mapping[str, object] = {"zones": ["default"]}
    storage_type = StorageType(projects.STORAGE, projects.STORAGE, is_default=True)
    no_type = "no-such-class"

    def __init__(self, parent: DvpParent, project: Project) -> None:
        self._parent, self._project = parent, project
        env = {"DVP_NAMESPACE": project.namespace, "CLUSTER_UUID": "catalog-1"}
        self.access = access.connect(config.read(str(project.kubeconfig), env), "test")
        self.catalog = cloud.DvpCatalog(self.access)

    def add_volume(self, name: str, cluster_id: str) -> str:
        document = disk_names.disk_document(name, projects.STORAGE, 2**30, cluster_id)
        self._parent.objects(self._project).make(
            DISKS,
            name,
            dict(document["metadata"]),  # type: ignore[call-overload]  # a mapping
            spec=document["spec"],
        )
        return name


class TestDvp(catalog.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, parent: DvpParent, project: Project) -> Iterator[Parent]:
        opened = Parent(parent, project)
        yield opened
        opened.access.close()


def test_a_cycle_is_one_list_of_each(parent: DvpParent, project: Project) -> None:
    """And nothing is watched, by the parent's audit log."""
    used = {f"{row.verb} {row.resource}" for row in parent.requests(project)}
    print(*sorted(used))
    assert used == {"list storageclasses", "get storageclasses", "list virtualdisks"}
