"""The whole lab: what `mooring lab` starts, shows and stops.

Rules: `up` may be repeated at any time and does only what is missing; what an `up`
began is ended again when it fails or is interrupted, and nothing else is.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import ccm, csi, csi_node, discoverer
from lib.lab.grounds import grounds, machine_grounds, servers
from lib.lab.kube import cluster, control_plane, kube_arguments, kubelet
from lib.lab.pods import host_keeper, pod_host
from lib.lab.run import checkpoint, durations, processes, progress, steps
from lib.lab.status import table
from lib.lab.storage import file_system_tools, loop_disks, node_keeper
from lib.lab.whole import chart_release, demo, parts, record
from lib.process import unix_sockets


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where our own PEX files come from: a checkout, else a folder that holds them."""

    checkout: pathlib.Path | None
    folder: pathlib.Path


def up(requested: parts.Lab, sources: Sources, shown: progress.Progress) -> parts.Lab:
    """Bring the lab up, and return it; what runs already is not changed.

    Of our daemons those that are not requested any more are stopped.

    Raises:
        LabError: something is missing or did not start. KubeError: the API server
            refused. What was started is stopped again then, as by Ctrl-C.
    """
    where = requested.where
    before = checkpoint.take(where)
    merged = _merged(record.read(where), requested.record, before)
    lab = dataclasses.replace(requested, record=merged)
    _require(lab, sources)
    record.write(where, merged)
    processes.stop(where, _unwanted(lab))
    kind = _kind(lab, before)
    cloud_runs = any(program.runs for program in lab.grounds.status(where))
    plan = _Start(lab, sources, shown).plan()
    try:
        _run(where, plan, before.halt, shown, kind)
    except BaseException:
        if merged.node and kubelet.PROGRAMS[-1] not in before.programs:
            _stop_node(merged, where)
        before.halt()
        if not cloud_runs:
            lab.grounds.down(where)
        raise
    return lab


def _run(
    where: places.Places,
    plan: Sequence[steps.StartStep],
    interrupt: Callable[[], None],
    shown: progress.Progress,
    kind: str,
) -> None:
    """Run the steps of a start, and show how far they are. kind: see `_kind`."""
    file = where.state.parent / "durations.json"
    last = durations.read(file, kind)
    took_s: durations.Durations = {}

    def watch(state: steps.RunState) -> None:
        nonlocal took_s
        took_s = state.elapsed_s
        rest_s = durations.remaining_s(plan, last, took_s, state.done)
        shown.overall(len(state.done), len(plan), rest_s)

    steps.run(plan, interrupt, watch=watch)
    durations.write(file, kind, took_s)


def _kind(lab: parts.Lab, before: checkpoint.Checkpoint) -> str:
    """Return which starts take as long as this one, after the record was written."""
    where = lab.where
    is_built = not programs.missing(where, groups(lab)) and lab.grounds.is_built(where)
    if lab.machines is not None:
        is_built = is_built and lab.machines.is_built(where)
    if before.programs:
        data = "running"
    else:
        data = "again" if control_plane.admin_kubeconfig(where).exists() else "new"
    return f"{'built' if is_built else 'not built'}, {data}"


def _stop_node(kept: record.Record, where: places.Places) -> None:
    if kept.charts:
        host_keeper.down(where)
    else:
        node_keeper.down(where)


def _components(lab: parts.Lab) -> tuple[str, ...]:
    """Return the PEX files that run on this machine; of pods none."""
    if lab.record.charts:
        return (pexes.TOOL,)
    node = (csi_node.NAME,) if lab.has_volumes else ()
    return (*lab.components, *node, pexes.TOOL)


def _unwanted(lab: parts.Lab) -> tuple[str, ...]:
    """Return the programs of components that this lab does not run (any more)."""
    running = () if lab.record.charts else lab.components
    names = [name for name in lab.supported if name not in running]
    sidecars = csi.SIDECARS if csi.NAME in names else ()
    machines: tuple[str, ...] = ()
    if isinstance(lab.grounds, machine_grounds.MachineGrounds) and not lab.machines:
        machines = lab.grounds.machines.programs
    return (*names, *sidecars, *machines)


def _require(lab: parts.Lab, sources: Sources) -> None:
    """Find out, before anything long begins, what is missing."""
    pexes.require(sources.checkout, sources.folder, _components(lab))
    if lab.record.charts:
        chart_release.require(lab)
        return
    if not lab.record.node:
        return
    if lab.has_volumes and not lab.has_claims:
        raise errors.LabError(f"--node needs the component {csi.NAME}")
    if lab.record.kubeconfig:
        raise errors.LabError("--node needs the lab's own cluster, not --kubeconfig")
    reason = kubelet.unavailable(lab.where)
    if reason is None and lab.has_volumes:
        reason = loop_disks.unavailable()
    if reason is not None:
        raise errors.LabError(f"this machine can't be a node: {reason}")


def _merged(
    old: record.Record | None, requested: record.Record, before: checkpoint.Checkpoint
) -> record.Record:
    """Return what is desired now, with what an earlier start created and recorded."""
    if old is None:
        return requested
    same = _sides(old) == _sides(requested)
    if not same and (before.programs or old.booted or old.created):
        raise errors.LabError(
            "the lab was started with another cluster or cloud;"
            " `mooring lab down` ends that one"
        )
    node, charts = requested.node or old.node, requested.charts or old.charts
    chosen = requested.components
    return msgspec.structs.replace(
        requested,
        booted=old.booted,
        created=old.created,
        node=node,
        charts=charts,
        images=requested.images or old.images,
        components=old.components if chosen is None else chosen,
    )


def _sides(kept: record.Record) -> tuple[str, str]:
    return kept.kubeconfig, kept.existing_cloud


@dataclasses.dataclass(frozen=True, slots=True)
class _Start:
    """The steps of one start. more: groups of Go programs that are built besides."""

    lab: parts.Lab
    sources: Sources
    shown: progress.Progress
    more: tuple[str, ...] = ()

    def plan(self) -> tuple[steps.StartStep, ...]:
        """Return the steps; those of an existing cluster or cloud are omitted."""
        kept = self.lab.record
        plan = [
            steps.StartStep("pexes", self.pexes),
            steps.StartStep("servers", self.servers, ("cloud",)),
            steps.StartStep("nodes", self.nodes, ("control plane", "servers")),
            steps.StartStep("simulated", self.simulated, ("nodes", "pexes")),
            *self._components(),
        ]
        if not kept.kubeconfig or kept.node:
            plan.append(steps.StartStep("kube build", self.kube_build))
        if not kept.kubeconfig:
            up_ = steps.StartStep("control plane", self.control_plane, ("kube build",))
            plan.append(up_)
        if not kept.existing_cloud:
            plan.append(steps.StartStep("cloud build", self.cloud_build))
            plan.append(steps.StartStep("cloud", self.cloud, ("cloud build",)))
        if kept.charts:
            plan += self._pods()
        elif self.lab.has_volumes:
            plan.append(steps.StartStep("file systems", self.file_systems))
            before = ("kube build", "control plane", "pexes", "servers", "file systems")
            plan.append(steps.StartStep("kubelet", self.storage_node, before))
        elif kept.node:
            needs = ("kube build", "control plane")
            plan.append(steps.StartStep("kubelet", self.kubelet, needs))
        return tuple(plan)

    def _pods(self) -> tuple[steps.StartStep, ...]:
        """Return the steps that start our daemons in pods of a chart."""
        before = ("kube build", "control plane", "pexes", "servers")
        return (
            steps.StartStep("kubelet", self.pod_node, before),
            steps.StartStep("images", self.images, ("kubelet",)),
            steps.StartStep("chart", self.chart, ("images", "cloud", "nodes")),
            *self._machines(("chart",)),
        )

    def _components(self) -> tuple[steps.StartStep, ...]:
        """Return the steps that start our daemons; csi-controller is the node's.

        In pods they are started by the chart.
        """
        plan: list[steps.StartStep] = []
        if self.lab.record.charts:
            return ()
        if self.lab.has_manager:
            # Its configuration names the router of the servers' network.
            needs = ("account", "servers", "pexes")
            plan.append(steps.StartStep("account", self.account, ("control plane",)))
            plan.append(steps.StartStep("manager", self.manager, needs))
        cloud_and_cluster = ("kube build", "control plane", "cloud", "pexes")
        if self.lab.has_claims and not self.lab.has_volumes:
            plan.append(steps.StartStep("csi", self.csi_controller, cloud_and_cluster))
        if self.lab.has_discovery:
            plan.append(
                steps.StartStep("discovery", self.discoverer, cloud_and_cluster)
            )
        # Last: the core of Cluster API takes a core of a small machine to start.
        before = ("simulated", *(step.name for step in plan))
        plan += self._machines(before)
        return tuple(plan)

    def _machines(self, before: tuple[str, ...]) -> tuple[steps.StartStep, ...]:
        """Return the steps of Cluster API, if it runs."""
        if self.lab.machines is None:
            return ()
        return (
            steps.StartStep("machines build", self.machines_build),
            steps.StartStep("machines", self.machines, ("machines build", *before)),
        )

    @property
    def where(self) -> places.Places:
        """Where the lab is."""
        return self.lab.where

    def pexes(self) -> None:
        """Package our own programs."""
        checkout, folder = self.sources.checkout, self.sources.folder
        components = _components(self.lab)
        pexes.bring(self.where, checkout, folder, self.shown, components)

    def kube_build(self) -> None:
        """Build Kubernetes."""
        needed = (*groups(self.lab), *self.more)
        programs.build(self.where, needed, self.shown)
        if self.lab.record.charts:
            pod_host.build(self.where, self.shown)
        elif self.lab.record.node:
            kubelet.build(self.where, self.shown)

    def cloud_build(self) -> None:
        """Fetch or build what our own cloud needs."""
        self.lab.grounds.build(self.where, self.shown)

    def control_plane(self) -> None:
        """Start our own cluster."""
        more = kube_arguments.allocating(ccm.POD_CIDR)
        control_plane.up(self.where, self.shown, manager_arguments=more)

    def cloud(self) -> None:
        """Start our own cloud."""
        self.lab.grounds.up(self.where, self.shown)

    def account(self) -> None:
        """Grant the manager its permissions in the cluster."""
        kubeconfig, target = self.lab.kubeconfig, self.lab.manager_kubeconfig
        manifest = self.lab.grounds.manifest
        if self.lab.record.kubeconfig:
            api = cluster.connect(kubeconfig)
            created = cluster.create_all(api, manifest)
            _remember(self.where, created=created)
        else:
            control_plane.apply_manifests(self.where, manifest)
            api = cluster.connect(kubeconfig)
        account = self.lab.account
        cluster.service_account_kubeconfig(api, kubeconfig, account, target)

    def manager(self) -> None:
        """Start the cloud controller manager."""
        name = self.lab.grounds.manager
        with self.shown.step(f"Start {name}"):
            words = self.lab.manager_arguments()
            pex = pexes.path(self.where, name)
            existing = self.lab.record.existing
            env = self.lab.grounds.manager_environment(self.where, existing)
            ccm.start(self.where, pex, words, env, name)

    def csi_controller(self) -> None:
        """Start csi-controller with its sidecars."""
        with self.shown.step(f"Start {csi.NAME} and its sidecars"):
            parts.start_csi_controller(self.lab)

    def discoverer(self) -> None:
        """Start cloud-data-discoverer."""
        with self.shown.step(f"Start {discoverer.NAME}"):
            parts.start_discoverer(self.lab)

    def machines_build(self) -> None:
        """Build the core of Cluster API."""
        if self.lab.machines is not None:
            self.lab.machines.build(self.where, self.shown)

    def machines(self) -> None:
        """Start Cluster API with the provider of the cloud, and create Machines."""
        machines = self.lab.machines
        if machines is not None and self.lab.record.charts:
            machines.up_with_chart(self.where, self.shown)
        elif machines is not None:
            machines.up(self.where, pexes.path(self.where, machines.name), self.shown)

    def servers(self) -> None:
        """Create the servers."""
        kept = self.lab.record
        names = kept.servers
        with self.shown.step(f"Boot {len(names)} servers") as step:
            cloud = self.lab.cloud()
            if not kept.existing_cloud:
                step.note("their network")
                self.lab.grounds.prepare(self.where)
            booted = parts.boot(cloud, names, kept.kind)
            if kept.existing_cloud:
                _remember(self.where, booted=tuple(booted.values()))
            step.note(", ".join(names))
            parts.wait_for_servers(cloud, names)

    def nodes(self) -> None:
        """Register a Node for each server."""
        kept = self.lab.record
        with self.shown.step("Register the Nodes"):
            observed = parts.wait_for_servers(self.lab.cloud(), kept.names)
            simulated = {name: observed[name] for name in kept.names}
            new = parts.register_simulated_nodes(self.lab.api(), simulated)
            if kept.kubeconfig:
                _remember(self.where, created=cluster.node_paths(new))

    def simulated(self) -> None:
        """Start the simulated kubelets."""
        with self.shown.step("Start the simulated kubelets"):
            pex = pexes.path(self.where, pexes.TOOL)
            parts.start_simulated_kubelets(self.lab, pex)

    def kubelet(self) -> None:
        """Start a real kubelet."""
        kubelet.up(self.where, self.shown, record.NODE)

    def pod_node(self) -> None:
        """Start a real kubelet for the pods of the chart."""
        with self.shown.step("Start the node of the pods") as step:
            step.note("kubelet, containerd, kube-proxy, scheduler")
            chart_release.start_host(self.lab)

    def images(self) -> None:
        """Import the images of the pods."""
        with self.shown.step("Import images") as step:
            chart_release.load_images(self.lab, step)

    def chart(self) -> None:
        """Install the umbrella chart."""
        with self.shown.step(f"Install charts/{chart_release.of(self.lab).chart}"):
            chart_release.install(self.lab)

    def file_systems(self) -> None:
        """Fetch the programs of file systems."""
        with self.shown.step("File system tools") as step:
            file_system_tools.ensure(self.where, os.environ, step)

    def storage_node(self) -> None:
        """Start a real kubelet with the programs of CSI."""
        with self.shown.step("Start the node, csi-controller and csi-node") as step:
            server_ids = parts.wait_for_servers(self.lab.cloud(), [record.NODE])
            step.note("kubelet, scheduler, sidecars")
            parts.start_storage_node(self.lab, server_ids[record.NODE])


def groups(lab: parts.Lab) -> tuple[str, ...]:
    """Return the groups of Go programs a lab needs."""
    own = () if lab.record.kubeconfig else (control_plane.GROUP,)
    node = (kubelet.GROUP,) if lab.record.node else ()
    claims = (csi.GROUP,) if lab.has_claims else ()
    volumes = (control_plane.SCHEDULER_GROUP,) if lab.has_volumes else ()
    if lab.record.charts:
        return (*own, *pod_host.GROUPS)
    return (*own, *node, *claims, *volumes)


def _remember(
    where: places.Places, booted: tuple[str, ...] = (), created: tuple[str, ...] = ()
) -> None:
    """Add to what `down` has to remove."""

    def change(old: record.Record) -> record.Record:
        return msgspec.structs.replace(
            old, booted=(*old.booted, *booted), created=(*old.created, *created)
        )

    record.update(where, change)


def build(
    lab: parts.Lab,
    sources: Sources,
    shown: progress.Progress,
    more: Collection[str] = (),
) -> None:
    """Make all programs and start none.

    more: groups of Go programs that no `up` starts.
    """
    _require(lab, sources)
    start = _Start(lab, sources, shown, tuple(more))
    names = ("pexes", "kube build", "cloud build", "machines build", "file systems")
    plan = [step for step in start.plan() if step.name in names]
    steps.run(plan, checkpoint.take(lab.where).halt)


def down(
    where: places.Places,
    ground: grounds.Grounds,
    shown: progress.Progress,
    *,
    wipe: bool,
) -> None:
    """Stop everything, and remove what was made in an existing cluster or cloud.

    ground: of the lab's cloud. wipe: the lab's data, certificates and logs go, too.

    Raises:
        LabError: something made in an existing cluster or cloud could not be removed;
            everything is stopped all the same.
    """
    with shown.step("Stop the lab"), contextlib.ExitStack() as all_of:
        # Last in, first out; each is tried whatever becomes of the others.
        all_of.callback(lambda: processes.stop(where, processes.names(where)))
        all_of.callback(ground.down, where)
        all_of.callback(control_plane.down, where)
        all_of.callback(node_keeper.down, where)
        all_of.callback(host_keeper.down, where)
        all_of.callback(_leave, where, ground, wipe=wipe)
        all_of.callback(processes.stop, where, [parts.SIMULATED, ground.manager])
    record.forget(where)
    if wipe and where.state.exists():
        with shown.step("Remove its data"):
            shutil.rmtree(where.state)


def _leave(where: places.Places, ground: grounds.Grounds, *, wipe: bool) -> None:
    """Remove our servers and Nodes from a cloud and a cluster that are not ours.

    wipe: a record that can't be read hinders nothing.
    """
    try:
        kept = record.read(where) or record.Record()
    except errors.LabError:
        if wipe:
            return
        raise
    lab = parts.Lab(where, kept, ground)
    if kept.existing_cloud and kept.booted:
        cloud = lab.cloud()
        for server_id in kept.booted:
            if isinstance(cloud, servers.Exposing):
                cloud.remove_floating_ips(server_id)
            cloud.delete(server_id)
    if not kept.kubeconfig:
        return
    try:
        cluster.delete_paths(lab.api(), kept.created)
    except kube_errors.KubeError as error:
        raise errors.LabError(
            f"cannot remove what the lab made in {kept.kubeconfig}: {error}"
        ) from error


def status(lab: parts.Lab) -> tuple[table.ProgramRow, ...]:
    """Return the state of every program of the lab."""
    where = lab.where
    simulated = processes.find(where, parts.SIMULATED) is not None
    facts = [*_components_now(lab), (parts.SIMULATED, simulated, simulated, 0)]
    if lab.record.charts:
        facts[:0] = _facts(where, host_keeper.status(where))
    elif lab.record.node:
        facts[:0] = _facts(where, kubelet.status(where))
    if lab.record.charts or lab.has_volumes:
        of_pods = lab.record.charts
        served = (host_keeper if of_pods else node_keeper).running(where).items()
        facts += [(program, runs, runs, 0) for program, runs in served]
    if not lab.record.existing_cloud:
        facts[:0] = [
            (each.name, each.runs, each.answers, each.port)
            for each in lab.grounds.status(where)
        ]
    if not lab.record.kubeconfig:
        facts[:0] = _facts(where, control_plane.status(where))
    return tuple(
        table.ProgramRow(program, table.health(runs=runs, answers=answers), port)
        for program, runs, answers, port in facts
    )


def _components_now(lab: parts.Lab) -> Iterator[tuple[str, bool, bool, int]]:
    """Yield the state of our daemons, as `_facts`; of csi-controller also sidecars.

    Those in pods are none of this machine's programs.
    """
    where, charts = lab.where, lab.record.charts
    if lab.has_manager and not charts:
        serves = functools.partial(ccm.serves, where)
        yield _fact(where, lab.grounds.manager, serves, where.port(ccm.PORT))
    if lab.has_claims and not (lab.has_volumes or charts):
        socket = csi.address(where)
        yield _fact(where, csi.NAME, lambda: unix_sockets.is_served(socket))
        for name in csi.SIDECARS:
            yield _fact(where, name, lambda: True)
    if lab.has_discovery and not charts:
        daemon = discoverer.at(where)
        yield _fact(where, discoverer.NAME, daemon.serves, daemon.port)
    if (machines := lab.machines) is not None:
        for name in machines.programs:
            if charts and name == machines.name:
                continue
            serves = functools.partial(machines.serves, where, name)
            yield _fact(where, name, serves, machines.port(where, name))


def _fact(
    where: places.Places, name: str, serves: Callable[[], bool], port: int = 0
) -> tuple[str, bool, bool, int]:
    runs = processes.find(where, name) is not None
    return name, runs, runs and serves(), port


def _facts(
    where: places.Places, statuses: Iterable[control_plane.ProgramStatus]
) -> list[tuple[str, bool, bool, int]]:
    """Return name, whether it runs and answers, and port (0: none) of programs."""
    ports = where.ports()
    return [
        (
            status.program,
            status.pid is not None,
            status.ready,
            ports.get(
                status.program, ports.get(status.program.removeprefix("kube-"), 0)
            ),
        )
        for status in statuses
    ]


def look(lab: parts.Lab) -> Callable[[], demo.View]:
    """Open cluster and cloud; return a function that reads both."""
    api, cloud = lab.api(), lab.cloud()
    return lambda: parts.view(api, cloud, lab.record.servers)
