"""csi-controller on a simulated engine, with the reference's file OVIRT_CONFIG."""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import psutil

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import csi
from lib.lab.run import processes
from lib.lab.zvirt import seed
from tests.lib.lab.zvirt.served import Served

DRIVER = "csi.ovirt.org"
CLASS = {"storageDomainName": seed.NFS, "thinProvisioning": "false"}
"""Source: deckhouse modules/030-cloud-provider-zvirt: parameters of a StorageClass."""


def environment(engine: Served, folder: pathlib.Path) -> Mapping[str, str]:
    """Write OVIRT_CONFIG as the reference's chart does; return its variable."""
    path = folder / "ovirt-config.yaml"
    document = {
        "ovirt_url": engine.url,
        "ovirt_username": "admin@internal",
        "ovirt_password": engine.password,
        "ovirt_insecure": False,
        "ovirt_cafile": engine.ca_file,
        "clusterid": seed.identifier("cluster"),
    }
    path.write_text(json.dumps(document))
    return {"OVIRT_CONFIG": str(path)}


class CsiZvirt:
    """Starts and kills csi-controller. where: places of its files and its log."""

    def __init__(
        self, where: places.Places, engine: Served, words: Sequence[str] = ()
    ) -> None:
        self.where = where
        self._env = environment(engine, where.state)
        self._words = ("--cloud=zvirt", *words)

    def start(self) -> None:
        """Start it, unless it runs; return when it listens."""
        pex = pexes.beside("csi-controller")
        csi.start(self.where, pex, self._words, self._env)

    def process(self) -> psutil.Process:
        """Return the running process."""
        process = processes.find(self.where, csi.NAME)
        assert process is not None
        return process

    def kill(self) -> None:
        """Kill it, as the machine's failure does."""
        process = self.process()
        process.kill()
        process.wait(10)

    def stop(self) -> None:
        """End it."""
        processes.stop(self.where, [csi.NAME])


@contextlib.contextmanager
def running(
    state: pathlib.Path,
    where: places.Places,
    engine: Served,
    words: Sequence[str] = ("--cluster=sanity",),
) -> Iterator[CsiZvirt]:
    """Run csi-controller while the block runs. state: folder of its files."""
    state.mkdir(parents=True, exist_ok=True)
    place = places.Places(where.cache, state, where.port("cloud-1"))
    driver = CsiZvirt(place, engine, words)
    try:
        driver.start()
        yield driver
    finally:
        driver.stop()
