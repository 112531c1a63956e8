"""DVP as capdvp uses it: the kinds of Cluster API, and the parent opened once."""

from collections.abc import Callable, Mapping

from capdvp import version
from lib.capi.provider_parts import ProviderKinds
from lib.cloud import protocol
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.machines import capi_kinds, desired_machine
from lib.cloud.dvp.machines.cloud import DvpMachines
from lib.cloud.machines import ReadBootstrap
from lib.cloud.support.source import Observers, Opened
from lib.machines.clusters.model import ClusterKinds
from lib.machines.kinds import Kinds
from lib.machines.templates.model import NodeShape, TemplateKinds

MACHINE = Kinds(
    capi_kinds.MACHINES,
    capi_kinds.MACHINE_FINALIZER,
    capi_kinds.CONDITION,
    capi_kinds.FIELD_MANAGER,
    mirrors=capi_kinds.MIRRORS,
)
CLUSTER = ClusterKinds(
    capi_kinds.CLUSTERS,
    capi_kinds.CLUSTER_FINALIZER,
    capi_kinds.FIELD_MANAGER,
    mirrors=capi_kinds.MIRRORS,
)


def shape(spec: Mapping[str, object]) -> NodeShape | None:
    """Return what a node of a machine spec has; None: the spec is invalid.

    DVP requires x86-64 hosts; the guests of Cluster API run Linux.
    """
    of_vm = desired_machine.cores_and_memory(spec)
    return None if of_vm is None else NodeShape(str(of_vm[0]), of_vm[1])


TEMPLATE = TemplateKinds(capi_kinds.TEMPLATES, capi_kinds.FIELD_MANAGER, shape)
KINDS = ProviderKinds(MACHINE, CLUSTER, TEMPLATE)


def opener(
    path: str, env: Mapping[str, str], user_agents: tuple[str, ...]
) -> Callable[[Observers, ReadBootstrap], Opened]:
    """Return what opens the cloud; it raises ConfigError.

    A changed kubeconfig replaces credentials without opening the cloud again: watches
    and what they have shown stay.
    """
    agent = " ".join((f"capdvp/{version.VERSION}", *user_agents))

    def open_cloud(observers: Observers, read_bootstrap: ReadBootstrap) -> Opened:
        settings = config.read(path, env)
        access = parent.connect(settings, agent, observers.observe, observers.circuit)
        machines = DvpMachines(access, read_bootstrap)
        cloud = protocol.Cloud("dvp", machines=machines, machine_changes=machines)
        return Opened(cloud, changed=lambda: False)

    return open_cloud
