"""A simulated zVirt engine as the cloud of a lab: implements `grounds.Grounds`."""

import contextlib
import pathlib
from collections.abc import Iterator, Mapping

from lib.lab import places
from lib.lab.daemons import ccm, csi
from lib.lab.grounds import grounds, servers
from lib.lab.run import processes, progress
from lib.lab.zvirt import engine_program, seed, server, virtual_servers

NAME = "zvirt"
MANAGER = "zvirt-ccm"
DRIVER = "csi.ovirt.org"
CLUSTER = "6d6f6f72-696e-4720-8c61-620000000003"
"""UUID of the lab's cluster."""
_VARIABLES = (
    "ZVIRT_API_URL",
    "ZVIRT_USERNAME",
    "ZVIRT_PASSWORD_FILE",
    "ZVIRT_CA_BUNDLE_FILE",
)


def variables(where: places.Places) -> Mapping[str, str]:
    """Return the variables of components; the password is in a file."""
    folder = engine_program.folder(where)
    values = (
        engine_program.url(where),
        seed.USER,
        str(folder / server.PASSWORD),
        str(folder / server.CA),
    )
    return dict(zip(_VARIABLES, values, strict=True))


class ZvirtClaims:
    """Claims on disks of the lab's engine, for `grounds.Claims`."""

    driver = DRIVER

    @property
    def default_class(self) -> str:
        """A class that is bound immediately: no Pod of the lab uses its claims."""
        return f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {csi.CLASS}
  annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: {DRIVER}
allowVolumeExpansion: true
parameters: {{storageDomainName: {seed.NFS}, thinProvisioning: "false"}}
"""

    def arguments(self, where: places.Places) -> tuple[str, ...]:
        """See the protocol."""
        del where
        return ("--cloud=zvirt", f"--cluster={CLUSTER}")

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """See the protocol."""
        return variables(where)


class ZvirtDiscovery:
    """The data center of the lab's engine, for `grounds.Discovery`."""

    arguments = ("--cloud=zvirt",)
    offers = "storageDomains"

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """See the protocol."""
        return variables(where)

    def installed(self) -> Mapping[str, object]:
        """See the protocol.

        Source: Deckhouse, ZvirtCloudProviderDiscoveryData.
        """
        return {"zones": ["default"], "storageDomains": []}


class ZvirtGrounds:
    """The lab's own engine; also `grounds.Counting`."""

    name = NAME
    title = "the zVirt engine"
    manager = MANAGER
    programs = (engine_program.PROGRAM,)
    has_routes = False
    volumes = None
    claims = ZvirtClaims()
    discovery = ZvirtDiscovery()
    load_balancer_annotation = ""
    has_load_balancers = False
    variables = _VARIABLES

    @property
    def manifest(self) -> str:
        """The rights of a cloud controller manager."""
        return ccm.manifest().replace(ccm.NAME, MANAGER)

    @property
    def faults(self) -> Mapping[str, grounds.Fault]:
        """See the protocol; others are rules of `settings.py`."""
        return {"without engine": without_engine}

    def ports(self, where: places.Places) -> Mapping[str, int]:
        """See the protocol."""
        return {engine_program.PROGRAM: where.port(engine_program.PORT)}

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """There is nothing to build."""

    def is_built(self, where: places.Places) -> bool:
        """There is nothing to build."""
        return True

    def up(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        engine_program.up(where, shown)

    def down(self, where: places.Places) -> None:
        """See the protocol."""
        engine_program.down(where)

    def status(self, where: places.Places) -> tuple[grounds.CloudProgram, ...]:
        """See the protocol."""
        runs = processes.find(where, engine_program.PROGRAM) is not None
        answers = runs and engine_program.answers(where)
        port = where.port(engine_program.PORT)
        row = grounds.CloudProgram(
            engine_program.PROGRAM, port, runs=runs, answers=answers
        )
        return (row,)

    def requests(self, where: places.Places) -> Mapping[str, int]:
        """See `grounds.Counting`."""
        return engine_program.counts(where)

    def prepare(self, where: places.Places) -> None:
        """Servers need nothing that a new engine lacks."""

    def open(self, where: places.Places, existing: grounds.Existing) -> servers.Cloud:
        """See the protocol."""
        file = pathlib.Path(self.described(where, existing).file)
        return virtual_servers.EngineServers(file)

    def environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol."""
        del existing
        return variables(where)

    def described(
        self, where: places.Places, existing: grounds.Existing
    ) -> grounds.Existing:
        """Return the engine by its control socket."""
        if existing.name:
            return existing
        return grounds.Existing(NAME, str(engine_program.socket_file(where)))

    def manager_arguments(
        self,
        where: places.Places,
        existing: grounds.Existing,
        kubeconfig: pathlib.Path,
        pod_cidr: str = "",
    ) -> tuple[str, ...]:
        """Return the reference's own command line."""
        del existing, pod_cidr
        return (
            "--cloud-provider=zvirt",
            "--allow-untagged-cloud=true",
            "--configure-cloud-routes=false",
            "--controllers=cloud-node,cloud-node-lifecycle",
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={where.port(ccm.PORT)}",
            "--v=4",
            "--topology-labels",
            *ccm.LAB,
        )

    def manager_environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol."""
        del existing
        return variables(where)


@contextlib.contextmanager
def without_engine(where: places.Places) -> Iterator[None]:
    """Stop the engine; its objects are kept."""
    engine_program.down(where)
    try:
        yield
    finally:
        engine_program.up(where, progress.Silent())
