"""zVirt as capz uses it: the kinds of Cluster API, and the engine opened on demand."""

import uuid
from collections.abc import Callable, Mapping

from capz import version
from lib.capi.provider_parts import ProviderKinds
from lib.cloud import protocol
from lib.cloud.machines import ReadBootstrap
from lib.cloud.support import absence_scope
from lib.cloud.support.source import CloudSource, Observers, Opened, ReadConfig
from lib.cloud.zvirt import client, config, home, http
from lib.cloud.zvirt.config import EngineConfig
from lib.cloud.zvirt.machines import desired_vm, zvirt_kinds
from lib.cloud.zvirt.machines.cloud import ZvirtMachines
from lib.cloud.zvirt.machines.vm_plan import MachineRules
from lib.machines.clusters.model import ClusterKinds
from lib.machines.kinds import Kinds
from lib.machines.templates.model import NodeShape, TemplateKinds
from lib.process import clock
from lib.process import config as process_config

VM_TAGS = "ZVIRT_VM_TAGS"
PREFIX = "cluster-"
"""Of the tag of a cluster, before its UUID. Source: chart of the reference."""
MACHINE = Kinds(
    zvirt_kinds.MACHINES,
    zvirt_kinds.MACHINE_FINALIZER,
    zvirt_kinds.CONDITION,
    zvirt_kinds.FIELD_MANAGER,
    mirrors=zvirt_kinds.MIRRORS,
    id_path=zvirt_kinds.ID_PATH,
    infrastructure=zvirt_kinds.CLUSTERS,
)
CLUSTER = ClusterKinds(
    zvirt_kinds.CLUSTERS,
    "",
    zvirt_kinds.FIELD_MANAGER,
    mirrors=zvirt_kinds.MIRRORS,
)


def shape(spec: Mapping[str, object]) -> NodeShape | None:
    """Return what a node of a machine spec has; None: the spec is invalid."""
    of_vm = desired_vm.cores_and_memory(spec)
    return None if of_vm is None else NodeShape(str(of_vm[0]), f"{of_vm[1]}Mi")


TEMPLATE = TemplateKinds(zvirt_kinds.TEMPLATES, zvirt_kinds.FIELD_MANAGER, shape)
KINDS = ProviderKinds(MACHINE, CLUSTER, TEMPLATE)


def tags(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the tags that VMs get."""
    return tuple(dict.fromkeys(env.get(VM_TAGS, "").split()))


def cluster_id(env: Mapping[str, str], flag: str) -> str:
    """Return the UUID of the cluster: of the flag, or of the tag cluster-UUID.

    Raises:
        ConfigError: none is set, it is no UUID, or both are set and differ.
    """
    named = [tag.removeprefix(PREFIX) for tag in tags(env) if tag.startswith(PREFIX)]
    problems: list[process_config.FieldProblem] = []
    expected = f"a tag {PREFIX}UUID with the UUID of this cluster, or --cluster-uuid"
    if len(set(named)) > 1:
        text = f"{' '.join(named)}: must have one tag {PREFIX}UUID"
        problems.append(process_config.stated(VM_TAGS, text))
    elif named and not _is_uuid(named[0]):
        shown = f"{PREFIX}{named[0]}"
        problems.append(process_config.FieldProblem(VM_TAGS, shown, expected))
    if flag and not _is_uuid(flag):
        problems.append(
            process_config.FieldProblem("--cluster-uuid", flag, "a UUID of the cluster")
        )
    if not problems and flag and named and named[0] != flag:
        own = f"{named[0]}, as in {VM_TAGS}"
        problems.append(process_config.FieldProblem("--cluster-uuid", flag, own))
    if not flag and not named:
        problems.append(process_config.not_set(VM_TAGS, expected))
    process_config.require(problems)
    return flag or named[0]


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def read(env: Mapping[str, str]) -> ReadConfig[EngineConfig]:
    """Read the configuration of an environment.

    Raises:
        ConfigError: with every problem.
    """
    return config.read(env, clock.utc_now())


def opener(
    env: Mapping[str, str], user_agents: tuple[str, ...]
) -> Callable[[Observers, ReadBootstrap], Opened]:
    """Return what opens the cloud, as often as a file of the environment changes."""
    agent = " ".join((f"capz/{version.VERSION}", *user_agents))
    memory = absence_scope.HomeMemory()
    rules = MachineRules(tags=tags(env))

    def open_cloud(observers: Observers, read_bootstrap: ReadBootstrap) -> Opened:
        def connect(settings: EngineConfig, seen_by: Observers) -> protocol.Cloud:
            access = client.EngineClient(
                lambda: settings,
                http.connect(settings),
                user_agent=agent,
                on_call=seen_by.observe,
                on_circuit=seen_by.circuit,
            )
            place = home.EngineHome(access, memory=memory)
            machines = ZvirtMachines(access, place, read_bootstrap, rules)
            return protocol.Cloud(
                "zvirt",
                machines=machines,
                machine_clusters=machines,
                check_reload=place.guard.check_reload,
            )

        paths = [str(path) for path in sorted(config.watched(env))]
        return CloudSource(paths, lambda: read(env), connect).open(observers)

    return open_cloud
