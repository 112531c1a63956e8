"""The whole lab: what `mooring lab` starts, shows and stops.

Rules: `up` may be repeated at any time and does only what is missing; what an `up`
began is ended again when it fails or is interrupted, and nothing else is.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
from collections.abc import Callable, Collection, Iterable

import msgspec

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import ccm, csi, csi_node
from lib.lab.grounds import grounds
from lib.lab.kube import cluster, control_plane, kube_arguments, kubelet
from lib.lab.run import checkpoint, processes, progress, steps
from lib.lab.status import table
from lib.lab.storage import file_system_tools, loop_disks, node_keeper
from lib.lab.whole import demo, parts, record


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where our own PEX files come from: a checkout, else a folder that holds them."""

    checkout: pathlib.Path | None
    folder: pathlib.Path


def up(requested: parts.Lab, sources: Sources, shown: progress.Progress) -> None:
    """Bring the lab up; what runs already is not changed.

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
    start = _Start(lab, sources, shown)
    try:
        steps.run(start.plan(), before.halt)
    except BaseException:
        if merged.node and kubelet.PROGRAMS[-1] not in before.programs:
            node_keeper.down(where)
        before.halt()
        raise


def _components(lab: parts.Lab) -> tuple[str, ...]:
    volumes = (csi.NAME, csi_node.NAME) if lab.has_volumes else ()
    return (lab.grounds.manager, *volumes, pexes.TOOL)


def _require(lab: parts.Lab, sources: Sources) -> None:
    """Find out, before anything long begins, what is missing."""
    pexes.require(sources.checkout, sources.folder, _components(lab))
    if not lab.record.node:
        return
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
    node = requested.node or old.node
    return msgspec.structs.replace(
        requested, booted=old.booted, created=old.created, node=node
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
            steps.StartStep("account", self.account, ("control plane",)),
            steps.StartStep("servers", self.servers, ("cloud",)),
            # Its configuration names the router of the servers' network.
            steps.StartStep("manager", self.manager, ("account", "servers", "pexes")),
            steps.StartStep("nodes", self.nodes, ("control plane", "servers")),
            steps.StartStep("simulated", self.simulated, ("nodes", "pexes")),
        ]
        if not kept.kubeconfig or kept.node:
            plan.append(steps.StartStep("kube build", self.kube_build))
        if not kept.kubeconfig:
            up_ = steps.StartStep("control plane", self.control_plane, ("kube build",))
            plan.append(up_)
        if not kept.existing_cloud:
            plan.append(steps.StartStep("cloud build", self.cloud_build))
            plan.append(steps.StartStep("cloud", self.cloud, ("cloud build",)))
        if self.lab.has_volumes:
            plan.append(steps.StartStep("file systems", self.file_systems))
            before = ("kube build", "control plane", "pexes", "servers", "file systems")
            plan.append(steps.StartStep("kubelet", self.storage_node, before))
        elif kept.node:
            needs = ("kube build", "control plane")
            plan.append(steps.StartStep("kubelet", self.kubelet, needs))
        return tuple(plan)

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
            ccm.start(self.where, pex, words, component=name)

    def servers(self) -> None:
        """Make the servers."""
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
    volumes = (control_plane.SCHEDULER_GROUP, csi.GROUP) if lab.has_volumes else ()
    return (*own, *node, *volumes)


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
    names = ("pexes", "kube build", "cloud build", "file systems")
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
    where, name = lab.where, lab.grounds.manager
    manager = processes.find(where, name) is not None
    simulated = processes.find(where, parts.SIMULATED) is not None
    facts = [
        (name, manager, manager and ccm.serves(where), where.port(ccm.PORT)),
        (parts.SIMULATED, simulated, simulated, 0),
    ]
    if lab.record.node:
        facts[:0] = _facts(where, kubelet.status(where))
    if lab.has_volumes:
        served = node_keeper.running(where).items()
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
