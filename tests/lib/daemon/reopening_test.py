"""A changed file brings a new cloud, a broken one leaves the old one in place."""

import pathlib
import threading
from collections.abc import Callable, Collection, Mapping

import pytest
import structlog.testing

from lib.cloud import errors, protocol
from lib.cloud import volumes as model_volumes
from lib.cloud.fake import load_balancers, volumes
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Ref,
    Target,
)
from lib.cloud.model import Absent, Instance, InstanceRef, Observation
from lib.daemon import reopening
from lib.process import config, files

REF = InstanceRef("node-1")
BROKEN = config.ConfigError(["cloud.conf: broken"])


class NamedInstances:
    """Instances that write down by whom they were asked, and may be held up."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self._name = name
        self._asked = asked
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.entered = threading.Event()

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        self.entered.set()
        assert self.may_answer.wait(10)
        self._asked.append(self._name)
        return dict.fromkeys(refs, Absent(by_id=False))

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        self._asked.append(self._name)
        return dict.fromkeys(refs, Absent(by_id=True))

    def confirm_absent(self, ref: InstanceRef) -> bool:
        self._asked.append(self._name)
        return False


class Clouds:
    """Opens one cloud after the other from a file; its text is the cloud's name."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file
        self.asked: list[str] = []
        self.opened: list[NamedInstances] = []

    def open(self) -> reopening.Opened:
        watch = files.FileWatch([self.file])
        text = self.file.read_text()
        if text == "broken":
            raise BROKEN
        self.opened.append(NamedInstances(text, self.asked))
        cloud = protocol.Cloud("toy", self.opened[-1])
        return reopening.Opened(cloud, watch.changed, (f"{text} is odd",))


@pytest.fixture()
def clouds(tmp_path: pathlib.Path) -> Clouds:
    file = tmp_path / "cloud.conf"
    file.write_text("one")
    return Clouds(file)


def instances_of(held: reopening.Reopening) -> Callable[[], protocol.Instances]:
    instances = held.part(lambda now: now.instances)
    assert instances is not None
    return instances


def volumes_of(held: reopening.Reopening) -> model_volumes.Volumes:
    now = held.part(lambda now: now.volumes)
    assert now is not None
    return now()


def ask(held: reopening.Reopening) -> None:
    instances_of(held)().observe([REF], 0.0)


def test_without_a_change_there_is_one_cloud(clouds: Clouds) -> None:
    held = reopening.Reopening(clouds.open)
    held.look()
    ask(held)
    assert (clouds.asked, len(clouds.opened)) == (["one"], 1)


def test_after_a_change_all_calls_go_to_the_new_cloud(clouds: Clouds) -> None:
    """The instances that a flow was given at the start are the new ones by then."""
    held = reopening.Reopening(clouds.open)
    instances = instances_of(held)
    clouds.file.write_text("two")
    with structlog.testing.capture_logs() as logs:
        held.look()
        held.look()
    instances().observe([REF], 0.0)
    assert not instances().confirm_absent(REF)
    assert clouds.asked == ["two", "two"]
    assert [entry["event"] for entry in logs] == [
        "configuration reloaded",
        "configuration warning",
    ]


def test_volumes_are_those_of_the_cloud_in_use(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.conf"
    file.write_text("one")
    opened: list[volumes.FakeVolumes] = []

    def open_cloud() -> reopening.Opened:
        opened.append(volumes.FakeVolumes(lambda: 0.0))
        watch = files.FileWatch([file])
        return reopening.Opened(
            protocol.Cloud("toy", volumes=opened[-1]), watch.changed
        )

    held = reopening.Reopening(open_cloud)
    assert volumes_of(held) is opened[0]
    file.write_text("two")
    held.look()
    assert volumes_of(held) is opened[1]


def test_load_balancers_are_those_of_the_cloud_in_use(tmp_path: pathlib.Path) -> None:
    """A controller that was given them at the start asks the new ones by then."""
    file = tmp_path / "cloud.conf"
    file.write_text("one")
    opened: list[load_balancers.FakeLoadBalancers] = []

    def open_cloud() -> reopening.Opened:
        opened.append(load_balancers.FakeLoadBalancers(lambda: 0.0))
        cloud = protocol.Cloud("toy", load_balancers=opened[-1])
        return reopening.Opened(cloud, files.FileWatch([file]).changed)

    held = reopening.Reopening(open_cloud)
    balancers = held.part(lambda now: now.load_balancers)
    assert balancers is not None
    file.write_text("two")
    held.look()
    target = Target(Ref(Cluster("id", "name"), "default", "web", "uid"), None)
    balancers().observe([target], Depth.TREE)
    assert (opened[0].calls, len(opened[1].calls)) == ([], 1)


def test_load_balancers_can_be_switched_only_by_a_restart(
    tmp_path: pathlib.Path,
) -> None:
    """The old cloud stays in use, and the reason is logged once."""
    file = tmp_path / "cloud.conf"
    file.write_text("on")

    def open_cloud() -> reopening.Opened:
        fake = load_balancers.FakeLoadBalancers(lambda: 0.0)
        balancers = fake if file.read_text() == "on" else None
        cloud = protocol.Cloud("toy", load_balancers=balancers)
        return reopening.Opened(cloud, files.FileWatch([file]).changed)

    held = reopening.Reopening(open_cloud)
    file.write_text("off")
    with structlog.testing.capture_logs() as logs:
        held.look()
        held.look()
    assert held.part(lambda now: now.load_balancers) is not None
    (entry,) = logs
    assert "load balancers were switched off: requires a restart" in entry["error"]


def test_a_reload_that_leads_to_another_project_is_refused_and_retried(
    tmp_path: pathlib.Path,
) -> None:
    """Reported once; retried at growing intervals; the file put back ends it."""
    file = tmp_path / "cloud.conf"
    file.write_text("project-1")
    opened: list[volumes.FakeVolumes] = []
    tries: list[str] = []

    def open_cloud() -> reopening.Opened:
        text = file.read_text()
        opened.append(volumes.FakeVolumes(lambda: 0.0))

        def check() -> None:
            tries.append(text)
            if text != "project-1":
                wrong = f"leads to {text}"
                raise errors.Unavailable(wrong, operation="reload")

        cloud = protocol.Cloud("toy", volumes=opened[-1], check_reload=check)
        return reopening.Opened(cloud, files.FileWatch([file]).changed)

    held = reopening.Reopening(open_cloud)
    file.write_text("project-2")
    with structlog.testing.capture_logs() as logs:
        for _ in range(10):
            held.look()
    assert volumes_of(held) is opened[0]
    assert [entry["error"] for entry in logs] == ["reload: leads to project-2"]
    assert tries == ["project-2"] * 4
    file.write_text("project-1")
    held.look()
    assert volumes_of(held) is opened[-1]


def test_the_swap_of_a_secret_volume_reopens(tmp_path: pathlib.Path) -> None:
    """Only the link to the folder above changes, as the kubelet does it."""
    for number, text in (("1", "one"), ("2", "two")):
        (tmp_path / f"..{number}").mkdir()
        (tmp_path / f"..{number}" / "cloud.conf").write_text(text)

    def swap(folder: str) -> None:
        (tmp_path / "..new").symlink_to(folder)
        (tmp_path / "..new").replace(tmp_path / "..data")

    swap("..1")
    (tmp_path / "cloud.conf").symlink_to("..data/cloud.conf")
    clouds = Clouds(tmp_path / "cloud.conf")
    held = reopening.Reopening(clouds.open)
    swap("..2")
    held.look()
    ask(held)
    assert clouds.asked == ["two"]


def test_a_broken_file_leaves_the_old_cloud_and_is_told_once(clouds: Clouds) -> None:
    held = reopening.Reopening(clouds.open)
    clouds.file.write_text("broken")
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            held.look()
    ask(held)
    assert clouds.asked == ["one"]
    assert [entry["event"] for entry in logs] == [
        "configuration reload failed, keeping the previous one"
    ]
    clouds.file.write_text("two")
    held.look()
    ask(held)
    assert clouds.asked == ["one", "two"]


def test_those_who_wait_are_told_after_each_replacement_and_only_then(
    clouds: Clouds,
) -> None:
    """Nodes in their backoff are read from the new cloud immediately."""
    held = reopening.Reopening(clouds.open)
    held.after(lambda: ask(held))
    for text in ("broken", "two", "two", "three"):
        clouds.file.write_text(text)
        held.look()
    assert clouds.asked == ["two", "three"]


def test_what_was_broken_is_tried_again_without_another_change(
    clouds: Clouds,
) -> None:
    """As when a CA file is missing for a while and comes back as it was."""
    faults = [BROKEN]
    opener: Callable[[], reopening.Opened] = clouds.open

    def open_later() -> reopening.Opened:
        if clouds.opened and faults:
            raise faults.pop()
        return opener()

    held = reopening.Reopening(open_later)
    clouds.file.write_text("two")
    held.look()
    assert len(clouds.opened) == 1
    held.look()
    assert len(clouds.opened) == 2


def test_a_call_under_way_ends_on_the_cloud_it_began_on(clouds: Clouds) -> None:
    held = reopening.Reopening(clouds.open)
    clouds.opened[0].may_answer.clear()
    under_way = threading.Thread(target=ask, args=(held,))
    under_way.start()
    assert clouds.opened[0].entered.wait(10)
    clouds.file.write_text("two")
    held.look()
    ask(held)
    assert clouds.asked == ["two"]
    clouds.opened[0].may_answer.set()
    under_way.join(10)
    assert clouds.asked == ["two", "one"]


def test_the_loop_ends_when_told(clouds: Clouds) -> None:
    stop = threading.Event()
    stop.set()
    reopening.Reopening(clouds.open).run(stop)


def test_what_is_broken_from_the_start_is_an_error(clouds: Clouds) -> None:
    clouds.file.write_text("broken")
    with pytest.raises(config.ConfigError, match="broken"):
        reopening.Reopening(clouds.open)
