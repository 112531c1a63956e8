"""Releases that replace each other on a node, while volume and Service are in use."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Generic

from lib.kube import resources
from lib.lab.pods import cluster_pods
from tests.harness.pods import users
from tests.harness.pods.installed_node import Images
from tests.harness.pods.users import NodeT

FIRST = "1"
"""Revision of helm's first release."""


@dataclasses.dataclass(frozen=True, slots=True)
class InUse:
    """What must not change. since: when the Node became Ready."""

    since: str
    mounts: Sequence[str]
    ingress: Sequence[object]
    cloud: Sequence[tuple[str, tuple[str, ...]]]


@dataclasses.dataclass(frozen=True, slots=True)
class Releases(Generic[NodeT]):
    """A node with two releases: charts, and references of images by component.

    own: value of the label `app`, and the container of the project's own image, by
    component.
    """

    user: users.Users[NodeT]
    own: Mapping[str, tuple[str, str]]
    previous: pathlib.Path
    old: Images
    new: Images

    def until_running(self, expected: Images) -> None:
        """Wait until each component has one pod, with this image, and it is Ready."""
        for component, reference in expected.items():
            runs = functools.partial(self._is_running, component, reference)
            self.user.node.until(f"{component} is {reference}", runs)

    def _is_running(self, component: str, reference: str) -> bool:
        app, own = self.own[component]
        pods = [
            pod
            for pod in self.user.node.system.all(resources.PODS)
            if pod["metadata"].get("labels", {}).get("app") == app
        ]
        used = [
            container["image"]
            for pod in pods
            for container in pod["spec"]["containers"]
            if container["name"] == own
        ]
        return used == [reference] and cluster_pods.is_ready(pods[0])

    def in_use(self) -> InUse:
        """Return what must not change; the Node is Ready."""
        user, node = self.user, self.user.node
        shown = node.default.get(resources.NODES, node.name) or {"status": {}}
        (ready,) = (x for x in shown["status"]["conditions"] if x["type"] == "Ready")
        assert ready["status"] == "True", ready
        cloud = tuple((key, tuple(ids)) for key, ids in node.in_cloud().items())
        return InUse(ready["lastTransitionTime"], user.mounts(), user.ingress(), cloud)

    def check(self, step: str, before: InUse, writes: int) -> None:
        """Fail if a step was noticed. writes: number of those before the steps."""
        self.user.writes_on()
        assert list(self.user.node.writes())[writes:] == [], step
        assert self.in_use() == before, step
        print(f"{step:60} no write, same mount, Node Ready")

    def upgrade_each(self, before: InUse, writes: int) -> None:
        """Upgrade component by component, then roll back: a row for each step.

        The pods of a component are replaced alone. before, writes: as of `check`.
        """
        node = self.user.node
        running = dict(self.old)
        for component, reference in self.new.items():
            pods = self.uids()
            running[component] = reference
            node.install(self.previous, "upgrade", running)
            self.until_running(running)
            changed = {name for name, uid in self.uids().items() if pods[name] != uid}
            assert changed == {component}
            self.check(f"{component}: new image, previous chart", before, writes)
        node.helm("rollback", node.chart, FIRST)
        self.until_running(self.old)
        self.check("helm rollback to the previous release", before, writes)

    def uids(self) -> dict[str, str]:
        """Return the UID of the newest pod of each component."""
        pods = self.user.node.pods.newest()
        names = {app: component for component, (app, _) in self.own.items()}
        return {
            names[app]: pod["metadata"]["uid"]
            for app, pod in pods.items()
            if app in names
        }
