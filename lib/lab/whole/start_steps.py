"""The steps that start a lab, and what each requires."""

import dataclasses
import os
import pathlib

import msgspec

from lib.lab import places
from lib.lab.artifacts import outlook, pexes, programs
from lib.lab.daemons import ccm, csi, csi_node, discoverer
from lib.lab.kube import cluster, control_plane, kube_arguments, kubelet
from lib.lab.pods import pod_host
from lib.lab.run import progress, steps
from lib.lab.storage import file_system_tools
from lib.lab.whole import chart_images, chart_release, parts, record, variant


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where our own PEX files come from: a checkout, else a folder that holds them."""

    checkout: pathlib.Path | None
    folder: pathlib.Path


@dataclasses.dataclass(frozen=True, slots=True)
class LabStart:
    """The steps of one start.

    more: groups of Go programs that are built besides. ahead: counts what is compiled.
    """

    lab: parts.Lab
    sources: Sources
    shown: progress.Progress
    more: tuple[str, ...] = ()
    ahead: outlook.Outlook = dataclasses.field(default_factory=outlook.Outlook)

    def plan(self) -> tuple[steps.StartStep, ...]:
        """Return the steps; those of an existing cluster or cloud are omitted."""
        kept = self.lab.record
        plan = [
            steps.StartStep("pexes", self.pexes),
            steps.StartStep("servers", self.servers, ("cloud",)),
            steps.StartStep("nodes", self.nodes, ("api", "servers")),
            steps.StartStep("simulated", self.simulated, ("nodes", "pexes")),
            *self._components(),
        ]
        if not kept.kubeconfig or kept.node:
            plan.append(steps.StartStep("kube build", self.kube_build, ("api build",)))
        if not kept.kubeconfig:
            needs = ("kube build", "api")
            plan += (
                steps.StartStep("api build", self.api_build),
                steps.StartStep("api", self.api, ("api build",)),
                steps.StartStep("control plane", self.control_plane, needs),
            )
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
            steps.StartStep("images build", self.images_build, ("pexes",)),
            steps.StartStep("kubelet", self.pod_node, before),
            steps.StartStep("images", self.images, ("kubelet", "images build")),
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
        components = programs_of(self.lab)
        pexes.bring(self.where, checkout, folder, self.shown, components)

    def api_build(self) -> None:
        """Build etcd and kube-apiserver: Nodes appear while the rest is built."""
        programs.build(
            self.where,
            [control_plane.GROUP],
            self.shown,
            names=control_plane.API,
            ahead=self.ahead,
        )

    def api(self) -> None:
        """Start etcd and kube-apiserver."""
        variant.write(self.where, self.lab.record)
        control_plane.up_api(self.where, self.shown)

    def kube_build(self) -> None:
        """Build the rest of Kubernetes."""
        needed = (*groups(self.lab), *self.more)
        programs.build(self.where, needed, self.shown, ahead=self.ahead)
        if self.lab.record.charts:
            pod_host.build(self.where, self.shown)
        elif self.lab.record.node:
            kubelet.build(self.where, self.shown)

    def cloud_build(self) -> None:
        """Fetch or build what our own cloud needs."""
        self.lab.grounds.build(self.where, self.shown)

    def control_plane(self) -> None:
        """Start the rest of our own cluster."""
        more = kube_arguments.allocating(ccm.POD_CIDR)
        title = "Start kube-controller-manager"
        control_plane.up(self.where, self.shown, manager_arguments=more, title=title)

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

    def images_build(self) -> None:
        """Build the images of the pods that are missing, from the checkout."""
        checkout = self.sources.checkout
        if checkout is not None:
            chart_images.build(self.lab, checkout, self.shown)

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


def programs_of(lab: parts.Lab) -> tuple[str, ...]:
    """Return the PEX files that run on this machine; of pods none."""
    if lab.record.charts:
        return (pexes.TOOL,)
    node = (csi_node.NAME,) if lab.has_volumes else ()
    return (*lab.components, *node, pexes.TOOL)
