import dataclasses

import pytest

from lib.lab.grounds import servers
from lib.lab.status import table
from lib.lab.whole import demo

INSIDE = ("InternalIP 10.0.0.5",)
OUTSIDE = ("ExternalIP 198.18.0.9",)
NAMES = ("mooring-lab-1", "mooring-lab-2", "mooring-lab-3")


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def clock(self) -> demo.Clock:
        return demo.Clock(lambda: self.now_s, self.sleep)


class Stage:
    """Keeps what the audience was told."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.ends: list[tuple[float, bool]] = []
        self.views = 0

    def announce(self, scene: demo.Scene) -> None:
        self.titles.append(scene.title)

    def watch(self, view: demo.View, elapsed_s: float) -> None:
        del view, elapsed_s
        self.views += 1

    def close(self, scene: demo.Scene, elapsed_s: float, *, is_complete: bool) -> None:
        del scene
        self.ends.append((elapsed_s, is_complete))


class World:
    """A cloud and a cluster in which a perfect openstack-ccm acts at once."""

    def __init__(self) -> None:
        self.servers = {name: servers.Server(name, name, "ACTIVE") for name in NAMES}
        self.floating: set[str] = set()
        self.asleep = False
        self.is_routed: bool | None = True

    def items(self) -> tuple[servers.Server, ...]:
        return tuple(self.servers.values())

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        del kind
        self.servers[name] = servers.Server(name, name, "ACTIVE")
        return self.servers[name]

    def stop(self, server_id: str) -> None:
        self._set(server_id, "SHUTOFF")

    def start(self, server_id: str) -> None:
        self._set(server_id, "ACTIVE")

    def delete(self, server_id: str) -> None:
        del self.servers[server_id]

    def add_floating_ip(self, server_id: str) -> str:
        self.floating.add(server_id)
        return "198.18.0.9"

    def remove_floating_ips(self, server_id: str) -> None:
        self.floating.discard(server_id)

    def _set(self, name: str, status: str) -> None:
        self.servers[name] = dataclasses.replace(self.servers[name], status=status)

    def look(self) -> demo.View:
        servers_ = {} if self.asleep else self.servers
        return demo.View(tuple(map(self._node, servers_.values())), self.items())

    def _node(self, server: servers.Server) -> table.NodeRow:
        up = server.status == "ACTIVE"
        return table.NodeRow(
            server.name,
            ready="True" if up else "Unknown",
            provider_id=f"openstack:///{server.id}",
            addresses=INSIDE + (OUTSIDE if server.id in self.floating else ()),
            taints=() if up else (table.SHUTDOWN,),
            pods="10.244.0.0/24",
            is_routed=self.is_routed,
        )


def test_all_scenes_are_seen_where_openstack_ccm_works() -> None:
    """The programme runs to its end and leaves the lab as it found it."""
    world, stage = World(), Stage()
    programme = demo.scenes(world, NAMES, servers.Kind())
    assert demo.play(programme, world.look, stage, Time().clock())
    assert stage.titles == [scene.title for scene in programme]
    assert all(succeeded for _, succeeded in stage.ends)
    assert world.look() == World().look()


@pytest.mark.parametrize("is_routed", [True, False, None])
def test_pods_are_routed_to_where_the_cloud_has_routes(is_routed: bool | None) -> None:
    """Two scenes more, which fail where the condition is another."""
    world, stage = World(), Stage()
    world.is_routed = is_routed
    programme = demo.scenes(world, NAMES, servers.Kind(), has_routes=True)
    assert len(programme) == len(demo.scenes(world, NAMES, servers.Kind())) + 2
    whole = demo.play(programme, world.look, stage, Time().clock())
    assert whole == (is_routed is True)


def test_what_does_not_happen_ends_the_demo_in_time() -> None:
    """A scene that is not seen ends after its time, and no other begins."""
    world, stage, time = World(), Stage(), Time()
    world.asleep = True
    programme = demo.scenes(world, NAMES, servers.Kind())
    assert not demo.play(programme, world.look, stage, time.clock())
    assert len(stage.titles) == 1
    elapsed_s, succeeded = stage.ends[0]
    assert not succeeded
    assert elapsed_s == pytest.approx(programme[0].timeout_s, abs=2 * demo.POLL_S)


def test_waiting_shows_every_look() -> None:
    """The audience sees the table fill in."""
    world, stage, time = World(), Stage(), Time()
    looks = iter([demo.View((), ()), demo.View((), ()), world.look()])
    succeeded = demo.wait(
        demo.initialised(NAMES), lambda: next(looks), 60, time.clock(), stage.watch
    )
    assert succeeded
    assert stage.views == 3


def test_initialised_wants_every_node_ready_and_untainted() -> None:
    """One stopped server is enough for not all to be well."""
    world = World()
    assert demo.initialised(NAMES)(world.look())
    world.stop(NAMES[1])
    assert not demo.initialised(NAMES)(world.look())
    assert not demo.initialised([*NAMES, "another"])(world.look())
