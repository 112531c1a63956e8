"""Meadow as the cloud of a lab, and the programs that a lab of it runs.

Written from lib/lab/grounds and lib/cloud alone, as lib/lab/openstack is: no code of
lib/lab or cmd/mooring has heard of it.
"""

import contextlib
import os
import pathlib
import sys
from collections.abc import Collection, Iterator, Mapping

from lib.ccm import manager, options
from lib.cloud.model import (
    Address,
    AddressType,
    Instance,
    InstanceId,
    InstanceRef,
    Observation,
    Phase,
)
from lib.cloud.protocol import Cloud
from lib.daemon import reopening
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.grounds import grounds, servers
from lib.lab.run import ports, processes, progress
from lib.process import flags
from tests.third import cloud, pasture

MANAGER = "meadow-ccm"
_PORT = places.cloud_ports([cloud.NAME])[cloud.NAME]
_PHASES = {servers.ACTIVE: Phase.RUNNING, servers.SHUTOFF: Phase.STOPPED}


def script(function: str) -> str:
    """Return a program that runs a function of this file, as a PEX file would."""
    return (
        f"import sys\nsys.path[:0] = {sys.path!r}\n"
        f"from tests.third import grounds\ngrounds.{function}(sys.argv[1:])\n"
    )


class MeadowGrounds:
    """Implements `lib.lab.grounds.grounds.Grounds`."""

    name = cloud.NAME
    title = "Meadow"
    manager = MANAGER
    programs = (cloud.NAME,)
    has_routes = False
    volumes = None
    claims = None
    discovery = None
    load_balancer_annotation = ""
    has_load_balancers = False
    variables = ("MEADOW_PORT",)

    @property
    def manifest(self) -> str:
        """The rights of any cloud controller manager, for this one's account."""
        return ccm.manifest().replace(ccm.NAME, MANAGER)

    @property
    def faults(self) -> Mapping[str, grounds.Fault]:
        """It can only be away, with all that it holds."""
        return {"away": self._away}

    @contextlib.contextmanager
    def _away(self, where: places.Places) -> Iterator[None]:
        self.down(where)
        try:
            yield
        finally:
            self.up(where, progress.Silent())

    def ports(self, where: places.Places) -> Mapping[str, int]:
        """See the protocol."""
        return {cloud.NAME: where.port(_PORT)}

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """There is nothing to build."""

    def is_built(self, where: places.Places) -> bool:
        """There is nothing to build."""
        return True

    def up(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        with shown.step("Start Meadow"):
            ports.require(where, [(cloud.NAME, _PORT)])
            path = os.pathsep.join(sys.path)
            words = [sys.executable, pasture.__file__, str(where.port(_PORT))]
            processes.start(where, cloud.NAME, words, {"PYTHONPATH": path})
            answers = self._answers
            processes.wait_for(where, cloud.NAME, lambda: answers(where))

    def down(self, where: places.Places) -> None:
        """See the protocol."""
        processes.stop(where, [cloud.NAME])

    def status(self, where: places.Places) -> tuple[grounds.CloudProgram, ...]:
        """See the protocol."""
        runs = processes.find(where, cloud.NAME) is not None
        answers = runs and self._answers(where)
        port = where.port(_PORT)
        return (grounds.CloudProgram(cloud.NAME, port, runs=runs, answers=answers),)

    def prepare(self, where: places.Places) -> None:
        """Servers need nothing."""

    def open(self, where: places.Places, existing: grounds.Existing) -> servers.Cloud:
        """See the protocol."""
        return pasture.Herd(int(self.described(where, existing).name))

    def environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol."""
        return {"MEADOW_PORT": self.described(where, existing).name}

    def described(
        self, where: places.Places, existing: grounds.Existing
    ) -> grounds.Existing:
        """Return the cloud by its port."""
        return existing if existing.name else grounds.Existing(str(where.port(_PORT)))

    def manager_arguments(
        self,
        where: places.Places,
        existing: grounds.Existing,
        kubeconfig: pathlib.Path,
        pod_cidr: str = "",
    ) -> tuple[str, ...]:
        """See the protocol."""
        del pod_cidr
        conf = where.state / "meadow.conf"
        conf.write_text(self.described(where, existing).name)
        return (
            f"--cloud-provider={cloud.NAME}",
            f"--cloud-config={conf}",
            f"--kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={where.port(ccm.PORT)}",
            *ccm.LAB,
        )

    def manager_environment(
        self, where: places.Places, existing: grounds.Existing
    ) -> Mapping[str, str]:
        """See the protocol."""
        del where, existing
        return {}

    def _answers(self, where: places.Places) -> bool:
        return not ports.free(where.port(_PORT))


class _Instances(cloud.MeadowInstances):
    """The instances of a pasture: read again for every question."""

    def __init__(self, herd: pasture.Herd, world: cloud.World) -> None:
        super().__init__(world)
        self._herd = herd

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        instances = [_instance(server) for server in self._herd.items()]
        self._world.instances = {instance.id: instance for instance in instances}
        return super().observe(refs, not_before)


def _instance(server: servers.Server) -> Instance:
    return Instance(
        InstanceId(server.id),
        server.name,
        _PHASES[server.status],
        cloud.provider_id(server.id),
        tuple(Address(AddressType.INTERNAL_IP, at) for at in server.addresses),
        "sheep",
        "pen-1",
    )


def run_manager(words: list[str]) -> None:
    """Be meadow-ccm: the manager of all clouds, on this one."""
    values = flags.parse(options.FLAGS, words)
    settings = options.read(values, cloud.NAME)
    port = int(pathlib.Path(settings.cloud_config).read_text())
    instances = _Instances(pasture.Herd(port), cloud.World())
    opened = reopening.Opened(Cloud(cloud.NAME, instances=instances), lambda: False)

    program = manager.ManagerProgram(MANAGER, "0", cloud.NAME, lambda calls: opened)
    sys.exit(manager.run(program, values, settings, os.environ))


def run_tool(words: list[str]) -> None:
    """Be mooring, with Meadow as one more entry in its registry."""
    # The commands read the registry when they are imported.
    from mooring.commands import provider_entry, providers

    openstack = providers.PROVIDERS["openstack"]
    providers.PROVIDERS[cloud.NAME] = provider_entry.Provider(
        name=cloud.NAME,
        rights=openstack.rights,
        component=MANAGER,
        config_help="The port of a pasture.",
        config_keys=("pasture",),
        existing_flag="--meadow",
        existing_help="Use this pasture.",
        load_balancer_annotations=openstack.load_balancer_annotations,
        read=openstack.read,
        remedies=openstack.remedies,
        grounds=MeadowGrounds,
        existing=grounds.Existing,
        client_words="-- server list",
    )
    from mooring.commands import main

    main.commands(words, prog_name="mooring")
