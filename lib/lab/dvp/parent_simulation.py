"""Runs the simulator of a parent cluster: watches, decides, acts, keeps Nodes alive."""

import concurrent.futures
import datetime
import functools
import json
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Mapping

from lib.kube import client, resources, store
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab.dvp import (
    backing,
    kinds,
    parent_simulator,
    settings,
    surroundings,
    webhook_server,
    writes,
)
from lib.lab.dvp.kinds import Item, World
from lib.lab.kube import cluster, simulated_kubelet
from lib.reconcile import loops

_SETTLE_S = 0.02
"""Pause after a change, so that one round follows several."""
_REPEAT_S = 1.0
_TIMEOUT_S = 20.0
_AT_ONCE = 8
_FIELDS = {
    resources.SECRETS: "type!=kubernetes.io/service-account-token",
    resources.CONFIG_MAPS: f"metadata.name={settings.NAME}",
}
NODES = tuple(f"hypervisor-{number}" for number in range(1, 7))
"""Of the parent; their zones are a, b, c, a, b, c: a VM can migrate in its zone."""

Report = Callable[[str], None]


class Simulation:
    """The simulator of one parent. report: receives a line per step and failure."""

    def __init__(self, api: client.Api, folder: pathlib.Path, report: Report) -> None:
        self._api = api
        self._report = report
        self._changed = threading.Event()
        self._stores: dict[Resource, store.Store[Item]] = {}
        self._backing = backing.Backing(folder)
        self._allocated = surroundings.Allocated()
        self._due = parent_simulator.Due()
        self._complaint = ""
        self._lock = threading.Lock()
        self._written: set[tuple[Resource, str]] = set()
        self._serial = ""

    def run(self, stop: threading.Event) -> None:
        """Simulate until `stop` is set."""
        threads = loops.Loops(stop)
        for kind in (*kinds.WATCHED, kinds.ADDRESS_LEASES):
            self._watch(threads, kind)
        threads.start("nodes", self._beat)
        threads.start("services", functools.partial(self._look, threads))
        for watched in tuple(self._stores.values()):
            while not watched.synced.wait(_REPEAT_S) and not stop.is_set():
                continue
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            pause: float | None = 0.0
            while not stop.is_set():
                self._changed.wait(_REPEAT_S if pause is None else pause)
                stop.wait(_SETTLE_S)
                self._changed.clear()
                pause = self._step(pool)
        threads.join(_REPEAT_S)

    def _watch(self, threads: loops.Loops, kind: Resource) -> None:
        selector = _FIELDS.get(kind, "")
        watched = store.Store(self._api, kind, Item, field_selector=selector)
        watched.subscribe(lambda key, old, new: self._changed.set())
        self._stores[kind] = watched
        threads.start("watch", watched.run)

    def _look(self, threads: loops.Loops, stop: threading.Event) -> None:
        """Watch ServiceWithHealthchecks as soon as its definition is there."""
        name = f"{kinds.CHECKED_SERVICES.plural}.{kinds.CHECKED_SERVICES.group}"
        while not stop.wait(_REPEAT_S):
            if kinds.CHECKED_SERVICES in self._stores:
                continue
            try:
                self._api.read(resources.DEFINITIONS, name, timeout_s=_TIMEOUT_S)
            except kube_errors.KubeError:
                continue
            self._watch(threads, kinds.CHECKED_SERVICES)

    def _beat(self, stop: threading.Event) -> None:
        while True:
            now = datetime.datetime.now(datetime.UTC)
            try:
                for name in NODES:
                    simulated_kubelet.beat(self._api, name, now)
            except kube_errors.KubeError as error:
                self._report(f"nodes: {error}")
            if stop.wait(simulated_kubelet.BEAT_S):
                return

    def _world(self) -> World:
        return World({kind: each.items() for kind, each in self._stores.items()})

    def others(self) -> webhook_server.Others:
        """Return the objects by which webhooks judge a write now."""
        return webhook_server.Others(self._api, self._world())

    def _settings(self, world: World) -> settings.SimulatorSettings:
        item = world.get(resources.CONFIG_MAPS, settings.NAMESPACE, settings.NAME)
        data = (item.data or {}) if item else {}
        if data.get("serial", "") != self._serial:
            self._serial = data.get("serial", "")
            self._report(f"settings {self._serial}")
        try:
            asked = settings.read(data)
        except ValueError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self._report(f"ConfigMap {settings.NAME}: {error}")
            return settings.SimulatorSettings()
        return asked

    def _step(self, pool: concurrent.futures.Executor) -> float | None:
        """Carry out what is due; return seconds until the next step, if any."""
        if not self._is_current():
            return _SETTLE_S
        world = self._world()
        self._backing.follow(world)
        asked, now = self._settings(world), datetime.datetime.now(datetime.UTC)
        proposed = list(parent_simulator.decide(world, self._allocated, now))
        ready, pause = self._due.ready(proposed, asked, time.monotonic())
        # One step of an object at a time: the next one is decided on what it has made.
        first: dict[str, writes.Step] = {}
        for step in ready:
            first.setdefault(step.item.uid, step)
        for _ in pool.map(lambda step: self._act(step, asked), first.values()):
            pass
        return 0.0 if ready else pause

    def _is_current(self) -> bool:
        """Report whether the stores have seen what the last step wrote."""
        with self._lock:
            self._written = {
                (kind, key)
                for kind, key in self._written
                if not self._stores[kind].is_current(key)
            }
            return not self._written

    def _note(self, kind: Resource, answer: bytes) -> str:
        """Note a write by its answer; return the version that it gave."""
        meta = json.loads(answer)["metadata"]
        version = str(meta["resourceVersion"])
        if kind in self._stores:
            name, space = meta["name"], meta.get("namespace")
            key = f"{space}/{name}" if space else name
            self._stores[kind].note_write(key, version)
            with self._lock:
                self._written.add((kind, key))
        return version

    def _act(self, step: writes.Step, asked: settings.SimulatorSettings) -> None:
        versions: dict[str, str] = {}
        chosen = parent_simulator.chosen(step, asked)
        try:
            for call in chosen:
                self._call(call, versions)
        except kube_errors.Forbidden as error:
            self._refused(step, error)
        except (kube_errors.NotFound, kube_errors.Conflict):
            return  # it has changed or is gone: the next look sees it
        except kube_errors.KubeError as error:
            self._postpone(step, error)
        else:
            self._report(f"{step.transition} {step.item.metadata.key}")
            if chosen is not step.calls:  # it fails again, until the rule is gone
                self._due.postpone(step, time.monotonic() + _REPEAT_S)

    def _postpone(self, step: writes.Step, error: kube_errors.KubeError) -> None:
        self._report(f"{step.transition} {step.item.metadata.key}: {error}")
        self._due.postpone(step, time.monotonic() + _REPEAT_S)

    def _refused(self, step: writes.Step, error: kube_errors.KubeError) -> None:
        self._postpone(step, error)
        if step.refused is None:
            return
        call = step.refused("Forbidden", str(error))
        try:
            if not _is_done(call):
                self._call(call, {})
        except kube_errors.KubeError as again:
            self._report(f"{step.transition} {step.item.metadata.key}: {again}")

    def _call(self, call: writes.Call, versions: dict[str, str]) -> None:
        """Write once. versions: of the objects that this step has changed, by UID."""
        if isinstance(call, writes.DeleteObject):
            self._remove(call)
        elif isinstance(call, writes.CreateObject):
            self._create(call)
        else:
            self._change(call, versions)

    def _create(self, call: writes.CreateObject) -> None:
        try:
            answer = self._api.create(
                call.kind,
                json.dumps(call.body).encode(),
                call.namespace or None,
                timeout_s=_TIMEOUT_S,
            )
        except kube_errors.AlreadyExists:
            return
        self._note(call.kind, answer)

    def _change(self, call: writes.PatchObject, versions: dict[str, str]) -> None:
        meta = call.item.metadata
        version = versions.get(meta.uid, meta.resource_version)
        only = {"uid": meta.uid, "resourceVersion": version}
        body = {**call.body, "metadata": {**call.body.get("metadata", {}), **only}}
        answer = self._api.patch(
            call.kind,
            meta.name,
            json.dumps(body).encode(),
            meta.namespace or None,
            subresource=call.subresource,
            timeout_s=_TIMEOUT_S,
        )
        versions[meta.uid] = self._note(call.kind, answer)

    def _remove(self, call: writes.DeleteObject) -> None:
        only: Mapping[str, str] = {"uid": call.uid} if call.uid else {}
        body = {"gracePeriodSeconds": 0, "preconditions": only}
        try:
            self._api.delete(
                call.kind,
                call.name,
                call.namespace or None,
                body=json.dumps(body).encode(),
                timeout_s=_TIMEOUT_S,
            )
        except kube_errors.NotFound:
            return


def _is_done(call: writes.Call) -> bool:
    """Report whether a change of conditions would change nothing but times."""
    if not isinstance(call, writes.PatchObject):
        return False
    rows = call.body.get("status", {}).get("conditions", ())
    names = ("type", "status", "reason", "message")

    def facts(conditions: object) -> object:
        if not isinstance(conditions, list | tuple):
            return None
        return [[row.get(name, "") for name in names] for row in conditions]

    return facts(rows) == facts(call.item.status.get("conditions", ()))


def main() -> None:
    """Run as a process.

    Its arguments are --kubeconfig=FILE, --folder=FOLDER, --port=PORT of the webhooks
    and --certificate=FILE.
    """
    words = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    api = cluster.connect(pathlib.Path(words["kubeconfig"]))
    report = functools.partial(print, flush=True)
    simulation = Simulation(api, pathlib.Path(words["folder"]), report)
    certificate = pathlib.Path(words["certificate"])
    with webhook_server.serving(int(words["port"]), certificate, simulation.others):
        simulation.run(threading.Event())
