"""The whole lab: what `mooring lab` starts, looks at and stops.

Rules: `up` may be repeated at any time and does only what is missing; what an `up`
began is ended again when it fails or is interrupted, and nothing else is.
"""

import contextlib
import dataclasses
import pathlib
import shutil
from collections.abc import Callable, Collection

import msgspec

from lib.kube import errors as kube_errors
from lib.lab import errors, places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, kubelet
from lib.lab.openstack import lab as openstack_lab
from lib.lab.run import footing, processes, progress, steps
from lib.lab.status import table
from lib.lab.whole import demo, parts, record


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where our own PEX files come from: a checkout, else a folder that holds them."""

    checkout: pathlib.Path | None
    folder: pathlib.Path


def up(
    where: places.Places,
    wanted: record.Record,
    sources: Sources,
    shown: progress.Progress,
) -> None:
    """Bring the lab up; what runs already is left alone.

    Raises:
        LabError: something is missing or did not start. KubeError: the API server
            refused. What was started is stopped again then, as by Ctrl-C.
    """
    before = footing.take(where)
    lab = _merged(record.read(where), wanted, before)
    _require(where, lab, sources)
    record.write(where, lab)
    start = _Start(where, lab, sources, shown)
    try:
        steps.run(start.plan(), before.halt)
    except BaseException:
        if lab.node and kubelet.PROGRAMS[-1] not in before.programs:
            kubelet.down(where)
        before.halt()
        raise


def _require(where: places.Places, lab: record.Record, sources: Sources) -> None:
    """Find out, before anything long begins, what is missing."""
    pexes.require(sources.checkout, sources.folder)
    if not lab.node:
        return
    if lab.kubeconfig:
        raise errors.LabError("--node needs the lab's own cluster, not --kubeconfig")
    reason = kubelet.unavailable(where)
    if reason is not None:
        raise errors.LabError(f"this machine can't be a node: {reason}")


def _merged(
    old: record.Record | None, wanted: record.Record, before: footing.Footing
) -> record.Record:
    """Give what is wanted now, with what an earlier start made and must remember."""
    if old is None:
        return wanted
    same = (old.kubeconfig, old.os_cloud) == (wanted.kubeconfig, wanted.os_cloud)
    if not same and (before.programs or old.booted or old.made):
        raise errors.LabError(
            "the lab was started with another cluster or cloud;"
            " `mooring lab down` ends that one"
        )
    node = wanted.node or old.node
    return msgspec.structs.replace(wanted, booted=old.booted, made=old.made, node=node)


@dataclasses.dataclass(frozen=True, slots=True)
class _Start:
    """The steps of one start. more: groups of Go programs that are built besides."""

    where: places.Places
    lab: record.Record
    sources: Sources
    shown: progress.Progress
    more: tuple[str, ...] = ()

    def plan(self) -> tuple[steps.Step, ...]:
        """Give the steps; those of an existing cluster or cloud are left out."""
        plan = [
            steps.Step("pexes", self.pexes),
            steps.Step("account", self.account, ("control plane",)),
            steps.Step("servers", self.servers, ("openstack",)),
            steps.Step("ccm", self.ccm, ("account", "openstack", "pexes")),
            steps.Step("nodes", self.nodes, ("control plane", "servers")),
            steps.Step("hollow", self.hollow, ("nodes", "pexes")),
        ]
        if not self.lab.kubeconfig or self.lab.node:
            plan.append(steps.Step("kube build", self.kube_build))
        if not self.lab.kubeconfig:
            up_ = steps.Step("control plane", self.control_plane, ("kube build",))
            plan.append(up_)
        if not self.lab.os_cloud:
            plan.append(steps.Step("openstack build", self.openstack_build))
            plan.append(steps.Step("openstack", self.openstack, ("openstack build",)))
        if self.lab.node:
            needs = ("kube build", "control plane")
            plan.append(steps.Step("kubelet", self.kubelet, needs))
        return tuple(plan)

    def pexes(self) -> None:
        """Package our own programs."""
        pexes.bring(self.where, self.sources.checkout, self.sources.folder, self.shown)

    def kube_build(self) -> None:
        """Build Kubernetes."""
        programs.build(self.where, (*groups(self.lab), *self.more), self.shown)

    def openstack_build(self) -> None:
        """Install OpenStack."""
        openstack_lab.build(self.where, self.shown)

    def control_plane(self) -> None:
        """Start our own cluster."""
        control_plane.up(self.where, self.shown)

    def openstack(self) -> None:
        """Start our own cloud."""
        openstack_lab.up(self.where, self.shown)

    def account(self) -> None:
        """Let openstack-ccm into the cluster."""
        kubeconfig = parts.kubeconfig(self.where, self.lab)
        target = parts.ccm_kubeconfig(self.where)
        if self.lab.kubeconfig:
            api = cluster.connect(kubeconfig)
            made = cluster.create_all(api, ccm.manifest())
            _remember(self.where, made=made)
        else:
            control_plane.apply_manifests(self.where, ccm.manifest())
            api = cluster.connect(kubeconfig)
        cluster.service_account_kubeconfig(api, kubeconfig, ccm.ACCOUNT, target)

    def ccm(self) -> None:
        """Start openstack-ccm."""
        with self.shown.step("Start openstack-ccm"):
            conf = parts.cloud_conf(self.where, self.lab)
            kubeconfig = parts.ccm_kubeconfig(self.where)
            words = ccm.arguments(self.where, kubeconfig, conf, ccm.QUICK)
            ccm.start(self.where, pexes.path(self.where, pexes.CCM), words)

    def servers(self) -> None:
        """Make the servers."""
        names = self.lab.servers
        with self.shown.step(f"Boot {len(names)} servers") as step:
            cloud = parts.cloud(self.where, self.lab)
            if not self.lab.os_cloud:
                step.note("their network")
                parts.prepare(self.where)
            made = parts.boot(cloud, names, self.lab.kind)
            if self.lab.os_cloud:
                _remember(self.where, booted=tuple(made.values()))
            step.note(", ".join(names))
            parts.wait_for_servers(cloud, names)

    def nodes(self) -> None:
        """Register a Node for each server."""
        with self.shown.step("Register the Nodes"):
            found = parts.wait_for_servers(
                parts.cloud(self.where, self.lab), self.lab.names
            )
            hollow = {name: found[name] for name in self.lab.names}
            api = parts.api(self.where, self.lab)
            new = parts.register_hollow_nodes(api, hollow)
            if self.lab.kubeconfig:
                _remember(self.where, made=cluster.node_paths(new))

    def hollow(self) -> None:
        """Start the hollow kubelets."""
        with self.shown.step("Start the hollow kubelets"):
            pex = pexes.path(self.where, pexes.TOOL)
            parts.start_hollow_kubelets(self.where, self.lab, pex)

    def kubelet(self) -> None:
        """Start a real kubelet."""
        kubelet.up(self.where, self.shown, record.NODE)


def groups(lab: record.Record) -> tuple[str, ...]:
    """Name the groups of Go programs a lab needs."""
    own = () if lab.kubeconfig else (control_plane.GROUP,)
    return (*own, kubelet.GROUP) if lab.node else own


def _remember(
    where: places.Places, booted: tuple[str, ...] = (), made: tuple[str, ...] = ()
) -> None:
    """Add to what `down` has to remove."""

    def change(old: record.Record) -> record.Record:
        return msgspec.structs.replace(
            old, booted=(*old.booted, *booted), made=(*old.made, *made)
        )

    record.update(where, change)


def build(
    where: places.Places,
    lab: record.Record,
    sources: Sources,
    shown: progress.Progress,
    more: Collection[str] = (),
) -> None:
    """Make all programs and start none.

    more: groups of Go programs that no `up` starts.
    """
    _require(where, lab, sources)
    start = _Start(where, lab, sources, shown, tuple(more))
    wanted = ("pexes", "kube build", "openstack build")
    plan = [step for step in start.plan() if step.name in wanted]
    steps.run(plan, footing.take(where).halt)


def down(where: places.Places, shown: progress.Progress, *, wipe: bool) -> None:
    """Stop everything, and remove what was made in an existing cluster or cloud.

    wipe: the lab's data, certificates and logs go, too.

    Raises:
        LabError: something made in an existing cluster or cloud could not be removed;
            everything is stopped all the same.
    """
    with shown.step("Stop the lab"), contextlib.ExitStack() as all_of:
        # Last in, first out; each is tried whatever becomes of the others.
        all_of.callback(lambda: processes.stop(where, processes.names(where)))
        all_of.callback(openstack_lab.down, where)
        all_of.callback(control_plane.down, where)
        all_of.callback(kubelet.down, where)
        all_of.callback(_leave, where, wipe=wipe)
        all_of.callback(processes.stop, where, [parts.HOLLOW, ccm.NAME])
    record.forget(where)
    if wipe and where.state.exists():
        with shown.step("Remove its data"):
            shutil.rmtree(where.state)


def _leave(where: places.Places, *, wipe: bool) -> None:
    """Remove our servers and Nodes from a cloud and a cluster that are not ours.

    wipe: a record that can't be read hinders nothing.
    """
    try:
        lab = record.read(where) or record.Record()
    except errors.LabError:
        if wipe:
            return
        raise
    if lab.os_cloud and lab.booted:
        cloud = parts.cloud(where, lab)
        for one in lab.booted:
            cloud.remove_floating_ips(one)
            cloud.delete(one)
    if not lab.kubeconfig:
        return
    try:
        api = parts.api(where, lab)
        cluster.delete_paths(api, lab.made)
    except kube_errors.KubeError as error:
        raise errors.LabError(
            f"cannot remove what the lab made in {lab.kubeconfig}: {error}"
        ) from error


def status(where: places.Places, lab: record.Record) -> tuple[table.Program, ...]:
    """Say how every program of the lab fares."""
    manager = processes.find(where, ccm.NAME) is not None
    hollow = processes.find(where, parts.HOLLOW) is not None
    facts = [
        (ccm.NAME, manager, manager and ccm.serves(where)),
        (parts.HOLLOW, hollow, hollow),
    ]
    if lab.node:
        node = kubelet.status(where)
        facts[:0] = [(one.program, one.pid is not None, one.ready) for one in node]
    if not lab.os_cloud:
        services = openstack_lab.status(where)
        facts[:0] = [
            (one.name, one.pid is not None, one.is_answering) for one in services
        ]
    if not lab.kubeconfig:
        plane = control_plane.status(where)
        facts[:0] = [(one.program, one.pid is not None, one.ready) for one in plane]
    return tuple(
        table.Program(
            name, table.health(runs=runs, answers=answers), _port(where, name)
        )
        for name, runs, answers in facts
    )


def _port(where: places.Places, program: str) -> int:
    """Give a program's port; 0 when it has none."""
    ports = where.ports()
    return ports.get(program, ports.get(program.removeprefix("kube-"), 0))


def look(where: places.Places, lab: record.Record) -> Callable[[], demo.View]:
    """Open cluster and cloud; give what looks at both, again and again."""
    api, cloud = parts.api(where, lab), parts.cloud(where, lab)
    return lambda: parts.view(api, cloud, lab.servers)
