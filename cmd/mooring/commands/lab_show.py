"""What `mooring lab` shows on the terminal."""

import contextlib
import shlex
import time
from collections.abc import Sequence
from typing import Protocol

import click
import rich.console
import rich.live
import rich.table

from lib.lab import errors, places
from lib.lab.grounds import grounds as ground_protocol
from lib.lab.pods import pod_host
from lib.lab.run import observed_steps
from lib.lab.status import table
from lib.lab.whole import component_demo, machine_demo, parts, record, whole
from lib.lab.whole import demo as scenario
from mooring.commands import edge, lab_path, outputs, providers
from mooring.commands import plan_routes as plan_command

SETTLE_S = 120


class Life(Protocol):
    """What the steps of a table have created."""

    def delete(self) -> None:
        """Delete it; fine when it is absent."""
        ...


class _Filling:
    """A table that fills in; where it can't be redrawn only its end is shown."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console
        self._live = rich.live.Live(console=console, auto_refresh=console.is_terminal)
        self._last: rich.table.Table | None = None

    def __enter__(self) -> "_Filling":
        if self._console.is_terminal:
            self._live.start()
        return self

    def show(self, view: scenario.View, elapsed_s: float) -> None:
        """Draw how things stand."""
        title = f"after {elapsed_s:.1f} s"
        self._last = table.nodes(view.nodes, view.cloud_servers, title)
        if self._console.is_terminal:
            self._live.update(self._last)

    def __exit__(self, *exc: object) -> None:
        if self._console.is_terminal:
            self._live.stop()
        elif self._last is not None:
            outputs.show(self._console, self._last)


def settle(lab: parts.Lab) -> None:
    """Show what becomes of the servers until all is complete.

    Raises:
        LabError: it did not within the time limit; the lab keeps running.
    """
    if lab.record.charts or providers.of(lab.grounds.name).has_path:
        _show_path(lab)
    elif lab.has_manager:
        _show_nodes(lab)


def _show_path(lab: parts.Lab) -> None:
    """Show servers, Nodes, an address and a volume in one table."""
    life = lab_path.LabPath(lab)
    if not show_steps("From a server to a volume", life, life.steps()):
        raise errors.LabError(f"not complete in time; the logs are in {lab.where.log}")


def _show_nodes(lab: parts.Lab) -> None:
    """Show the Nodes until the manager has initialised them all, and routes exist."""
    are_initialised = scenario.initialised(lab.record.servers)
    are_routed = scenario.routed(lab.record.servers)

    def is_met(view: scenario.View) -> bool:
        return are_initialised(view) and (not lab.has_routes or are_routed(view))

    with _Filling(rich.console.Console()) as filling:
        done = scenario.wait(
            is_met,
            whole.look(lab),
            SETTLE_S,
            scenario.Clock(),
            filling.show,
        )
    if not done:
        name = lab.grounds.manager
        raise errors.LabError(
            f"{name} did not initialise every Node, with its route, within"
            f" {SETTLE_S} s;"
            f" its log is {lab.where.log / f'{name}.log'}"
        )


def look_around(lab: parts.Lab) -> None:
    """Print how to reach the lab, and what to try."""
    tool, name = edge.spoken(), lab.record.names[1]
    lines = [
        "",
        "Look around:",
        f'  eval "$({tool} lab env)"',
        f"  {tool} lab kubectl -- get nodes -o wide",
        *(f"  {tool} {words}" for words in _client(lab)),
        f"  {_log(lab)}",
        f"  {tool} lab status",
        "Try:",
        f"  {tool} lab demo",
        f"  {tool} lab server stop {name}",
        f"  {tool} lab down",
    ]
    click.echo("\n".join(lines))


def _log(lab: parts.Lab) -> str:
    """Return the command that shows the log of the cloud controller manager.

    Without one, that of the cloud's first program.
    """
    name = lab.grounds.manager or lab.grounds.programs[0]
    if lab.record.charts:
        # The API server does not reach the kubelet, hence no kubectl logs.
        return f"tail -F {pod_host.logs(lab.where)}/*_{name}-*/{name}/*.log"
    return f"{edge.spoken()} lab logs -f {name}"


def _client(lab: parts.Lab) -> Sequence[str]:
    """Return an example of the client of the lab's cloud, if it has one."""
    words = providers.of(lab.grounds.name).client_words
    return [f"lab {lab.grounds.name} {words}"] if words else []


def current(where: places.Places) -> parts.Lab:
    """Return the lab that was started here.

    Raises:
        LabError: none exists.
    """
    kept = record.read(where)
    if kept is None:
        raise errors.LabError(
            f"there is no lab here; `{edge.spoken()} lab up` starts one"
        )
    return parts.Lab(where, kept, providers.of(kept.provider).grounds())


def grounds(where: places.Places) -> ground_protocol.Grounds:
    """Return the grounds of the lab that was started here, or of the usual provider."""
    try:
        kept = record.read(where)
    except errors.LabError:
        kept = None  # whoever ends the lab says that it can't be read
    return providers.of(kept.provider if kept else "").grounds()


class TerminalStage:
    """Plays the demo on a terminal: a live table for each scene."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console
        self._filling: _Filling | None = None

    def announce(self, scene: scenario.Scene) -> None:
        """See `demo.Stage.announce`."""
        self._console.rule(f"[bold]{scene.title}")
        self._console.print(f"Expected: {scene.expect}")
        self._filling = _Filling(self._console).__enter__()

    def watch(self, view: scenario.View, elapsed_s: float) -> None:
        """See `demo.Stage.watch`."""
        if self._filling is not None:
            self._filling.show(view, elapsed_s)

    def close(
        self, scene: scenario.Scene, elapsed_s: float, *, is_complete: bool
    ) -> None:
        """See `demo.Stage.close`."""
        self.end()
        if is_complete:
            self._console.print(f"[green]Observed after {elapsed_s:.1f} s.")
        else:
            self._console.print(f"[red]Not observed within {scene.timeout_s:.0f} s.")

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._filling is not None:
            self._filling.__exit__()
            self._filling = None


def demo(where: places.Places) -> bool:
    """Play the demo; report whether all was observed."""
    lab = current(where)
    console = rich.console.Console()
    is_complete = _scenes(lab, console) if lab.has_manager else True
    if lab.has_routes:
        plan_routes(lab, console)
    return all([_components(lab), _machines(lab), _volume(lab), is_complete])


def _scenes(lab: parts.Lab, console: rich.console.Console) -> bool:
    stage = TerminalStage(console)
    programme = scenario.scenes(
        lab.cloud(),
        lab.record.names,
        lab.record.kind,
        has_routes=lab.has_routes,
        manager=lab.grounds.manager,
    )
    try:
        return scenario.play(programme, whole.look(lab), stage, scenario.Clock())
    finally:
        stage.end()


def _components(lab: parts.Lab) -> bool:
    life = component_demo.ComponentLife(lab)
    if not (steps := life.steps()):
        return True
    return show_steps(f"{', '.join(lab.components)}", life, steps)


def _machines(lab: parts.Lab) -> bool:
    life = machine_demo.of(lab)
    if life is None:
        return True
    return show_steps("Machines of Cluster API", life, life.steps())


def _volume(lab: parts.Lab) -> bool:
    if not lab.has_volumes or not lab.has_claims:
        return True
    life = parts.volume_life(lab)
    return show_steps("A volume of csi-controller and csi-node", life, life.steps())


def show_steps(
    title: str, life: Life, steps: Sequence[observed_steps.ObservedStep]
) -> bool:
    """Do the steps, with one table; report whether all ends were observed.

    life: deletes what the steps have created, when one was not complete.
    """
    console = rich.console.Console()
    console.rule(f"[bold]{title}")
    complete = ""
    is_whole = False
    with rich.live.Live(console=console, auto_refresh=False) as live:

        def show(rows: Sequence[observed_steps.StepRow]) -> None:
            nonlocal complete
            cells = [(row.title, row.evidence, row.seconds) for row in rows]
            last = "".join(row.title for row in rows if row.evidence)
            if console.is_terminal:
                live.update(table.steps(cells), refresh=True)
            elif last != complete:
                row = [row for row in rows if row.evidence][-1]
                click.echo(f"{row.seconds:6.1f} s  {row.title}: {row.evidence}")
            complete = last
            if rows[-1].evidence and not console.is_terminal:
                outputs.show(console, table.steps(cells))

        try:
            is_whole = observed_steps.run(steps, show, time.monotonic, time.sleep)
        finally:
            if not is_whole:
                life.delete()
    return is_whole


def plan_routes(lab: parts.Lab, console: rich.console.Console) -> None:
    """Show what `mooring plan routes` shows, and how to ask it."""
    shared = ("--cloud-config=", "--cluster-cidr=")
    options = [word for word in lab.manager_arguments() if word.startswith(shared)]
    words = [f"--kubeconfig={lab.kubeconfig}", *options]
    console.rule("[bold]mooring plan routes")
    click.echo(f"{edge.spoken()} plan routes {shlex.join(words)}")
    with contextlib.suppress(SystemExit):
        plan_command.routes.main(words, standalone_mode=False)
