"""The lab of the OpenStack operator: what `mooring lab osdpl` starts and stops.

Rules: `up` may be repeated at any time and does only what is missing; the programs that
an `up` began are ended again when it fails or is interrupted.
"""

import dataclasses
import datetime
import shutil
import sys
from collections.abc import Callable, Mapping

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.lab.kube import cluster, control_plane
from lib.lab.osdpl import chart_sources, controller, deployment, nodes, simulation
from lib.lab.run import checkpoint, processes, progress, steps
from lib.lab.status import table

SIMULATOR = "workload-simulator"
GROUPS = (control_plane.GROUP, control_plane.SCHEDULER_GROUP, helm.GROUP)
PORT_DISTANCE = 200
"""From the ports of the lab of `mooring lab up`, which may run at the same time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tool:
    """How the workload simulator is run as a process. env: besides the caller's."""

    words: tuple[str, ...]
    env: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Programs:
    """What `bring` puts in place: simulator and controller."""

    tool: Tool
    start_controller: Callable[[], None]


def usual(where: places.Places) -> places.Places:
    """Return the places of this lab, beside those of the lab of `mooring lab up`."""
    state = where.state.with_name(f"{where.state.name}-osdpl")
    return places.Places(where.cache, state, where.port_base + PORT_DISTANCE)


def up(
    where: places.Places,
    bring: Callable[[], Programs],
    shown: progress.Progress,
    source: str = "",
) -> client.Api:
    """Bring everything up and create the OpenStackDeployment.

    bring: packages the programs. source: of other charts than the lab's own.

    Raises:
        LabError: something is missing or did not start. KubeError: the API server
            refused. What was started is stopped again then.
    """
    before = checkpoint.take(where)
    brought: list[Programs] = []

    def start_cluster() -> None:
        programs.build(where, GROUPS, shown)
        start(where, shown)

    def package() -> None:
        brought.append(bring())

    def start_rest() -> None:
        address = source or chart_sources.serve_repository(where)
        start_simulator(where, brought[0].tool, shown)
        with shown.step("Install the chart of osdpl-controller"):
            controller.install(where)
            controller.install_webhook(where)
        with shown.step("Start osdpl-controller"):
            brought[0].start_controller()
        with shown.step("Create the OpenStackDeployment"):
            controller.apply(_api(where), deployment.manifest(address))

    plan = (
        steps.StartStep("pexes", package),
        steps.StartStep("cluster", start_cluster),
        steps.StartStep("rest", start_rest, ("pexes", "cluster")),
    )
    try:
        steps.run(plan, before.halt)
    except BaseException:
        before.halt()
        raise
    return _api(where)


def start(where: places.Places, shown: progress.Progress) -> None:
    """Start the control plane with scheduler; create Nodes, namespace and storage.

    Raises:
        LabError: a program is not built or did not start. KubeError: the API server
            refused.
    """
    control_plane.up(where, shown)
    control_plane.start_scheduler(where, shown)
    control_plane.apply_manifests(where, deployment.BASE)
    nodes.ensure(_api(where), datetime.datetime.now(datetime.UTC))


def start_simulator(where: places.Places, tool: Tool, shown: progress.Progress) -> None:
    """Start the process that simulates all workloads."""
    kubeconfig = control_plane.admin_kubeconfig(where)
    words = (*tool.words, f"--kubeconfig={kubeconfig}")
    with shown.step("Start the workload simulator"):
        processes.start(where, SIMULATOR, words, tool.env)


def _api(where: places.Places) -> client.Api:
    return cluster.connect(control_plane.admin_kubeconfig(where))


def down(where: places.Places, shown: progress.Progress, *, wipe: bool) -> None:
    """Stop everything. wipe: remove data, certificates and logs, too."""
    with shown.step("Stop the lab"):
        processes.stop(where, (controller.NAME, SIMULATOR))
        others = (chart_sources.REPOSITORY, chart_sources.REGISTRY)
        processes.stop(where, others)
        control_plane.down(where)
    if wipe and where.state.exists():
        with shown.step("Remove its data"):
            shutil.rmtree(where.state)


def status(where: places.Places) -> tuple[table.ProgramRow, ...]:
    """Return the state of each program of the lab."""
    facts = [
        (each.program, each.pid is not None, each.ready)
        for each in control_plane.status(where)
    ]
    for name in (control_plane.SCHEDULER, SIMULATOR, chart_sources.REPOSITORY):
        runs = processes.find(where, name) is not None
        facts.append((name, runs, runs))
    runs = processes.find(where, controller.NAME) is not None
    facts.append((controller.NAME, runs, runs and controller.is_ready(where)))
    ports = where.ports()
    return tuple(
        table.ProgramRow(
            name,
            table.health(runs=runs, answers=answers),
            ports.get(name, ports.get(name.removeprefix("kube-"), 0)),
        )
        for name, runs, answers in facts
    )


def source_tool() -> Tool:
    """Return how tests run the simulator: from the sources that they have imported."""
    code = f"import {simulation.__name__} as program; program.main()"
    path = ":".join(part for part in sys.path if part)
    return Tool((sys.executable, "-c", code), {"PYTHONPATH": path})
