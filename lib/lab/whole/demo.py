"""The demo of openstack-ccm: act, announce what to expect, watch."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from lib.lab.grounds import servers
from lib.lab.status import table

POLL_S = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """Nodes and servers, read one after the other."""

    nodes: tuple[table.NodeRow, ...]
    cloud_servers: tuple[servers.Server, ...]

    def node(self, name: str) -> table.NodeRow | None:
        """Return one Node, or None."""
        return next((node for node in self.nodes if node.name == name), None)

    def server(self, name: str) -> servers.Server | None:
        """Return one server, or None."""
        return next(
            (server for server in self.cloud_servers if server.name == name), None
        )

    def active_server(self, name: str) -> str:
        """Describe a server; empty until it is ACTIVE."""
        server = self.server(name)
        if server is None or server.status != servers.ACTIVE:
            return ""
        where = f" in zone {server.zone}" if server.zone else ""
        return f"{server.id}{where}: {', '.join(server.addresses)}"

    def initialised_node(self, name: str) -> str:
        """Describe a Node; empty until it is Ready and initialised."""
        node = self.node(name)
        if node is None or not initialised([name])(self):
            return ""
        where = f", zone {node.zone}" if node.zone else ""
        return f"{node.provider_id}, {node.type}{where}"


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """One step of the demo.

    expect: what is to be observed, and why. is_met: whether it is so now.
    """

    title: str
    expect: str
    act: Callable[[], object]
    is_met: Callable[[View], bool]
    timeout_s: float = 60


class Stage(Protocol):
    """Where the demo is shown."""

    def announce(self, scene: Scene) -> None:
        """Print what is about to happen."""
        ...

    def watch(self, view: View, elapsed_s: float) -> None:
        """Show how things stand."""
        ...

    def close(self, scene: Scene, elapsed_s: float, *, is_complete: bool) -> None:
        """Print how a scene ended."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """Time, as tests replace it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def initialised(names: Sequence[str]) -> Callable[[View], bool]:
    """Wait for Nodes that are Ready and have all that openstack-ccm gives them."""

    def is_met(view: View) -> bool:
        observed = [view.node(name) for name in names]
        return all(
            node is not None
            and node.initialised
            and node.ready == "True"
            and table.SHUTDOWN not in node.taints
            for node in observed
        )

    return is_met


def has_taint(name: str, taint: str) -> Callable[[View], bool]:
    """Wait for a Node with a taint."""

    def is_met(view: View) -> bool:
        node = view.node(name)
        return node is not None and taint in node.taints

    return is_met


def has_external(name: str, *, is_exposed: bool) -> Callable[[View], bool]:
    """Wait for a Node with, or without, an ExternalIP."""

    def is_met(view: View) -> bool:
        node = view.node(name)
        if node is None:
            return False
        return is_exposed == any(
            row.startswith("ExternalIP ") for row in node.addresses
        )

    return is_met


def routed(names: Sequence[str]) -> Callable[[View], bool]:
    """Wait for Nodes with Pods to which the cloud routes."""

    def is_met(view: View) -> bool:
        observed = [view.node(name) for name in names]
        return all(
            node is not None and node.pods and node.is_routed for node in observed
        )

    return is_met


def gone(name: str) -> Callable[[View], bool]:
    """Wait for a Node to be away."""
    return lambda view: view.node(name) is None


def scenes(
    cloud: servers.Cloud,
    names: Sequence[str],
    kind: servers.Kind,
    *,
    has_routes: bool = False,
    manager: str = "openstack-ccm",
) -> tuple[Scene, ...]:
    """Return the programme. names: three servers; each scene leaves the lab whole.

    has_routes: whether the cloud routes to the Pods of Nodes. manager: the component
    that follows the servers.
    """
    first, second, third = names[:3]
    well = Scene(
        f"All is well with {', '.join(names)}",
        "every Node is Ready and has provider ID, addresses, zone and type.",
        lambda: None,
        initialised(names),
    )
    return (
        well,
        *([_routed(names)] if has_routes else []),
        *_stopped_and_started(cloud, second, manager),
        *_exposed_and_hidden(cloud, first),
        *_migrated(cloud, first),
        *_deleted_and_made(cloud, third, kind, manager),
        *([_routed([third])] if has_routes else []),
    )


def _routed(names: Sequence[str]) -> Scene:
    return Scene(
        f"Pods of {', '.join(names)} are reached",
        "openstack-ccm has added a route for the podCIDR of each Node to the router,"
        " and an address pair to the port of its server: NetworkUnavailable is False.",
        lambda: None,
        routed(names),
    )


def _on(
    cloud: servers.Cloud, name: str, do: Callable[[str], object]
) -> Callable[[], None]:
    """Create a call that does something with the servers of a name."""

    def act() -> None:
        for server in cloud.items():
            if server.name == name:
                do(server.id)

    return act


def _stopped_and_started(
    cloud: servers.Cloud, name: str, manager: str
) -> tuple[Scene, ...]:
    return (
        Scene(
            f"Stop the server {name}",
            "its kubelet falls silent; some 8 s later Kubernetes calls the Node"
            f" not ready; {manager} finds the server SHUTOFF and adds the taint"
            f" {table.SHUTDOWN}.",
            _on(cloud, name, cloud.stop),
            has_taint(name, table.SHUTDOWN),
        ),
        Scene(
            f"Start the server {name} again",
            f"its kubelet reports, the Node is Ready, and {manager} takes the"
            " taint away.",
            _on(cloud, name, cloud.start),
            initialised([name]),
        ),
    )


def _exposed_and_hidden(cloud: servers.Cloud, name: str) -> tuple[Scene, ...]:
    """Return the scenes of a floating IP; none where there are no such IPs."""
    if not isinstance(cloud, servers.Exposing):
        return ()
    return (
        Scene(
            f"Give {name} a floating IP",
            "the next read of the addresses adds it to the Node as ExternalIP.",
            _on(cloud, name, cloud.add_floating_ip),
            has_external(name, is_exposed=True),
        ),
        Scene(
            f"Take the floating IP of {name} away",
            "the ExternalIP goes.",
            _on(cloud, name, cloud.remove_floating_ips),
            has_external(name, is_exposed=False),
        ),
    )


def _migrated(cloud: servers.Cloud, name: str) -> tuple[Scene, ...]:
    """Return the scene of a live migration; none where a user cannot ask for it."""
    if not isinstance(cloud, servers.Migrating):
        return ()
    migrating = cloud
    before: dict[str, str] = {}
    rows: list[table.NodeRow | None] = []

    def act() -> None:
        for server in cloud.items():
            if server.name == name:
                before[server.id] = migrating.host(server.id)
                migrating.migrate(server.id)

    def is_met(view: View) -> bool:
        rows.append(view.node(name))
        moved = [migrating.host(id_) not in ("", host) for id_, host in before.items()]
        labels = {row.zone for row in rows if row is not None}
        return bool(moved) and all(moved) and len(labels) == 1 and is_well(view)

    is_well = initialised([name])
    return (
        Scene(
            f"Migrate the server {name}",
            "it runs on another host; its Node is Ready all the time, and neither"
            " zone nor addresses change.",
            act,
            is_met,
        ),
    )


def _deleted_and_made(
    cloud: servers.Cloud, name: str, kind: servers.Kind, manager: str
) -> tuple[Scene, ...]:
    return (
        Scene(
            f"Delete the server {name}",
            f"its kubelet falls silent, the Node becomes not ready, and {manager}"
            " deletes it, for there is no such server any more.",
            _on(cloud, name, cloud.delete),
            gone(name),
        ),
        Scene(
            f"Make a server {name} again",
            f"its kubelet registers a new Node, which {manager} initialises"
            " with the new server's provider ID.",
            lambda: cloud.boot(name, kind),
            initialised([name]),
        ),
    )


def play(
    programme: Sequence[Scene],
    look: Callable[[], View],
    stage: Stage,
    clock: Clock,
) -> bool:
    """Play all scenes until one is not complete in time; report whether all were."""
    for scene in programme:
        stage.announce(scene)
        began = clock.now()
        scene.act()
        is_complete = wait(scene.is_met, look, scene.timeout_s, clock, stage.watch)
        stage.close(scene, clock.now() - began, is_complete=is_complete)
        if not is_complete:
            return False
    return True


def wait(
    is_met: Callable[[View], bool],
    look: Callable[[], View],
    timeout_s: float,
    clock: Clock,
    show: Callable[[View, float], None],
) -> bool:
    """Read until it is met or the time is over; report which."""
    began = clock.now()
    while True:
        view = look()
        elapsed_s = clock.now() - began
        show(view, elapsed_s)
        if is_met(view):
            return True
        if elapsed_s > timeout_s:
            return False
        clock.sleep(POLL_S)
