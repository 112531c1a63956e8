"""The whole lab: what `mooring lab` starts, shows and stops.

Rules: `up` may be repeated at any time and does only what is missing; what an `up`
began is ended again when it fails or is interrupted, and nothing else is.
"""

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.artifacts import go_modules, pexes, program_archive, programs
from lib.lab.capi import core_program
from lib.lab.daemons import ccm, csi, discoverer
from lib.lab.grounds import grounds, machine_grounds, servers
from lib.lab.kube import cluster, control_plane, kubelet
from lib.lab.pods import host_keeper, pod_host
from lib.lab.proxy import kube_proxy
from lib.lab.run import checkpoint, durations, processes, progress, steps
from lib.lab.status import table
from lib.lab.storage import loop_disks, node_keeper
from lib.lab.whole import chart_release, demo, parts, record, start_steps, variant
from lib.process import unix_sockets


def up(
    requested: parts.Lab, sources: start_steps.Sources, shown: progress.Progress
) -> parts.Lab:
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
    variant.require(where, merged)
    _require(lab, sources)
    record.write(where, merged)
    processes.stop(where, _unwanted(lab))
    kind = _kind(lab, before)
    cloud_runs = any(program.runs for program in lab.grounds.status(where))
    start = start_steps.LabStart(lab, sources, shown)
    try:
        _run(start, before.halt, kind)
    except BaseException:
        if merged.node and kubelet.PROGRAMS[-1] not in before.programs:
            _stop_node(merged, where)
        before.halt()
        if not cloud_runs:
            lab.grounds.down(where)
        raise
    return lab


def _run(start: start_steps.LabStart, interrupt: Callable[[], None], kind: str) -> None:
    """Run the steps of a start, and show how far they are. kind: see `_kind`."""
    where, plan, shown = start.where, start.plan(), start.shown
    file = where.state.parent / "durations.json"
    last = durations.read(file, kind)
    took_s: durations.Durations = {}

    def watch(state: steps.RunState) -> None:
        nonlocal took_s
        took_s = state.elapsed_s
        rest_s = durations.remaining_s(plan, last, took_s, state.done)
        if (compiling_s := start.ahead.remaining_s()) is not None:
            rest_s = max(rest_s or 0.0, compiling_s)
        shown.overall(len(state.done), len(plan), rest_s)

    steps.run(plan, interrupt, watch=watch)
    durations.write(file, kind, took_s)


def _kind(lab: parts.Lab, before: checkpoint.Checkpoint) -> str:
    """Return which starts take as long as this one, after the record was written."""
    where = lab.where
    is_built = not programs.missing(
        where, start_steps.groups(lab)
    ) and lab.grounds.is_built(where)
    if lab.machines is not None:
        is_built = is_built and lab.machines.is_built(where)
    if before.programs:
        data = "running"
    else:
        data = "again" if control_plane.admin_kubeconfig(where).exists() else "new"
    return f"{'built' if is_built else 'not built'}, {data}"


def first_start(lab: parts.Lab) -> str:
    """Return what a start that has to build programs begins with; else empty."""
    missing = programs.missing(lab.where, start_steps.groups(lab))
    if not missing:
        return ""
    if archive := os.environ.get(program_archive.SETTING):
        how = f"programs come from {archive}: a few minutes"
    else:
        how = (
            f"{len(missing)} programs are compiled where no download site has them: 10"
            " to 35 minutes on two cores, 10 GB in ~/.cache"
        )
    return (
        f"First start: {how}. Ctrl-C is safe: `lab up` continues. Later starts take a"
        " minute."
    )


def program_folders(where: places.Places) -> tuple[str, ...]:
    """Return the folders of built programs that any variant of a lab starts.

    Of the cache: those that are not built are omitted.
    """
    needed = (control_plane.GROUP, kubelet.GROUP, csi.GROUP, *pod_host.GROUPS)
    folders = {
        *(
            go_modules.folder(where.cache, program.module)
            for program in go_modules.in_groups(set(needed))
        ),
        kube_proxy.folder(where),
        core_program.folder(where),
    }
    return tuple(sorted(folder.name for folder in folders if folder.is_dir()))


def _stop_node(kept: record.Record, where: places.Places) -> None:
    if kept.charts:
        host_keeper.down(where)
    else:
        node_keeper.down(where)


def _unwanted(lab: parts.Lab) -> tuple[str, ...]:
    """Return the programs of components that this lab does not run (any more)."""
    running = () if lab.record.charts else lab.components
    names = [name for name in lab.supported if name not in running]
    sidecars = csi.SIDECARS if csi.NAME in names else ()
    machines: tuple[str, ...] = ()
    if isinstance(lab.grounds, machine_grounds.MachineGrounds) and not lab.machines:
        machines = lab.grounds.machines.programs
    return (*names, *sidecars, *machines)


def _require(lab: parts.Lab, sources: start_steps.Sources) -> None:
    """Find out, before anything long begins, what is missing."""
    pexes.require(sources.checkout, sources.folder, start_steps.programs_of(lab))
    if lab.record.charts:
        chart_release.require(lab, can_build=sources.checkout is not None)
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


def build(
    lab: parts.Lab,
    sources: start_steps.Sources,
    shown: progress.Progress,
    more: Collection[str] = (),
) -> None:
    """Make all programs and start none.

    more: groups of Go programs that no `up` starts.
    """
    _require(lab, sources)
    start = start_steps.LabStart(lab, sources, shown, tuple(more))
    names = {
        *("pexes", "api build", "kube build", "cloud build", "machines build"),
        *("file systems", "images build"),
    }
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
