"""A project with very much in it: for those who must read all that a cloud offers.

Everything is made and cleared away in parallel, service by service, by raw calls.
"""

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import keystoneauth1.adapter
import openstack.connection
import openstack.exceptions

from lib.lab import places
from lib.lab.openstack import accounts, cloud
from tests.harness import testing

FLAVORS, IMAGES, NETWORKS = testing.by_tier((100, 60, 20), (300, 200, 50))
NAMED = IMAGES * 3 // 4
"""So many names the images share."""
AT_ONCE = 6
CLUSTER_KEY = "cinder.csi.openstack.org/cluster"
"""Source: kubernetes/cloud-provider-openstack pkg/csi/cinder."""

COMPUTE = "compute"
NETWORK = "network"
IMAGE = "image"
BLOCK_STORAGE = "block_storage"

T = TypeVar("T")
Json = dict[str, object]


@contextlib.contextmanager
def seeded(
    where: places.Places, account: accounts.Account, cluster_id: str
) -> Iterator["SeedData"]:
    """Fill a project for as long as the block lasts; see `SeedData.fill`."""
    with (
        contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin,
        contextlib.closing(cloud.connect(where, account)) as mine,
    ):
        seed_data = SeedData(admin, mine)
        try:
            seed_data.fill(cluster_id)
            yield seed_data
        finally:
            seed_data.clear()


@dataclasses.dataclass
class SeedData:
    """What a project was given. created: paths by service."""

    admin: openstack.connection.Connection
    mine: openstack.connection.Connection
    created: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def fill(self, cluster_id: str) -> None:
        """Create flavors, images, networks and a few of everything else.

        Names are in Cyrillic, empty, missing and given twice, each where that service
        allows it. cluster_id: whose mark the volumes carry.
        """
        jobs: list[tuple[Callable[[int], object], int]] = [
            (self.flavor, FLAVORS),
            (self._image, IMAGES),
            (self._network, NETWORKS),
            (lambda number: self._others(cluster_id), 1),
        ]
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
            list(pool.map(lambda job: _all(job[0], range(job[1])), jobs))

    def clear(self) -> None:
        """Delete all that was made; volumes before their types."""
        if self.created:
            with concurrent.futures.ThreadPoolExecutor(len(self.created)) as pool:
                list(pool.map(self._clear, self.created))

    def _clear(self, service: str) -> None:
        paths = sorted(self.created[service], key=lambda path: "/types/" in path)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for kind in (False, True):
                some = [path for path in paths if ("/types/" in path) is kind]
                list(pool.map(lambda path: self.delete(service, path), some))

    def get(self, service: str, path: str) -> Json:
        """Read something as the project sees it."""
        answer = self._proxy(service, is_admin=False).get(path)
        openstack.exceptions.raise_from_response(answer)
        document: Json = answer.json()
        return document

    def delete(self, service: str, path: str) -> None:
        """Delete something; fine when it does not exist."""
        self._proxy(service, is_admin=True).delete(path)

    def flavor(self, number: int) -> str:
        """Create a flavor with much memory: it must not be the smallest."""
        body = {
            "name": "большой" if number == 0 else f"size-{number:03}",
            "ram": 65536 + 512 * number,
            "vcpus": 1 + number % 64,
            "disk": number % 4,
            "OS-FLV-EXT-DATA:ephemeral": number % 3,
        }
        return self._post(COMPUTE, "/flavors", {"flavor": body}, is_admin=True)

    def volume_type(self, name: str) -> str:
        """Create a volume type that only this project sees; return its ID."""
        body = {"name": name, "os-volume-type-access:is_public": False}
        type_id = self._post(
            BLOCK_STORAGE, "/types", {"volume_type": body}, is_admin=True
        )
        access = {"addProjectAccess": {"project": self.mine.current_project_id}}
        answer = self.admin.block_storage.post(f"/types/{type_id}/action", json=access)
        openstack.exceptions.raise_from_response(answer)
        return type_id

    def _image(self, number: int) -> None:
        body = {"disk_format": "raw", "container_format": "bare"}
        if number == 0:
            body["name"] = "образ"
        elif number > 1:  # and one has no name at all
            body["name"] = f"image-{number % NAMED}"
        if number == 2:
            body["cinder_img_volume_type"] = "slow"
        self._post(IMAGE, "/images", body)

    def _network(self, number: int) -> None:
        odd = {0: "сеть", 1: "", 2: "twice", 3: "twice"}
        body = {"name": odd.get(number, f"net-{number}")}
        self._post(NETWORK, "/networks", {"network": body})

    def _others(self, cluster_id: str) -> None:
        group = {"name": "группа", "description": ""}
        self._post(NETWORK, "/security-groups", {"security_group": group})
        spread = {"name": "spread", "policies": ["anti-affinity"]}
        self._post(COMPUTE, "/os-server-groups", {"server_group": spread})
        self.volume_type("SSD R1")
        for name in ("pvc-known", "static", "pvc-lost", "pvc-foreign"):
            self.volume(name, "another" if name == "pvc-foreign" else cluster_id)

    def volume(self, name: str, cluster_id: str) -> None:
        """Create a volume with the ownership metadata of a cluster."""
        body = {"name": name, "size": 1, "metadata": {CLUSTER_KEY: cluster_id}}
        self._post(BLOCK_STORAGE, "/volumes", {"volume": body})

    def _post(
        self, service: str, path: str, body: object, *, is_admin: bool = False
    ) -> str:
        """Make something; return its ID."""
        answer = self._proxy(service, is_admin=is_admin).post(path, json=body)
        openstack.exceptions.raise_from_response(answer)
        document = answer.json()
        whole = document if "id" in document else next(iter(document.values()))
        self.created.setdefault(service, []).append(f"{path}/{whole['id']}")
        return str(whole["id"])

    def _proxy(self, service: str, *, is_admin: bool) -> keystoneauth1.adapter.Adapter:
        connection = self.admin if is_admin else self.mine
        proxy: keystoneauth1.adapter.Adapter = getattr(connection, service)
        return proxy


def _all(work: Callable[[T], object], items: Collection[T]) -> None:
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(work, items))
