"""Runs containers of Pods as processes, in place of kubelets and images.

Nodes are registered and kept ready. A Pod that the scheduler has assigned is started
with the arguments of its container when its image is known here, and is Ready when its
port is in use. A Pod that is being deleted is stopped first. Others stay Pending.
"""

import base64
import contextlib
import dataclasses
import datetime
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping, Sequence

from lib.kube import client
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors, places
from lib.lab.kube import cluster, control_plane, simulated_kubelet
from lib.lab.kube.kube_objects import NODE, POD, Json, Objects
from lib.lab.run import ports, processes

SYSTEM = "kube-system"
POLL_S = 1.0
ROOM = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "50Gi", "pods": "110"}
SECRET = Resource("", "v1", "secrets", "Secret", True)
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}


@dataclasses.dataclass(frozen=True)
class Program:
    """What an image contains. image: part of its name. command: without arguments."""

    image: str
    command: Sequence[str]


@dataclasses.dataclass
class PodRunner:
    """Kubelets of some Nodes. first_port: of those that programs listen on.

    problems: failures of a cycle; the next one tries again.
    """

    where: places.Places
    api: client.Api
    nodes: Sequence[str]
    programs: Sequence[Program]
    first_port: int
    problems: list[str] = dataclasses.field(default_factory=list)
    _ports: dict[str, int] = dataclasses.field(default_factory=dict)

    def register(self) -> None:
        """Create the Nodes, as kubelets with an external cloud provider would."""
        objects = Objects(self.api, "")
        for name in self.nodes:
            now = datetime.datetime.now(datetime.UTC)
            body = simulated_kubelet.manifest(name, now)
            metadata, status = body["metadata"], body["status"]
            assert isinstance(metadata, dict)
            assert isinstance(status, dict)
            labels = {**metadata["labels"], **CONTROL_PLANE}
            status = {**status, "capacity": ROOM, "allocatable": ROOM}
            objects.make(
                NODE, name, {"labels": labels}, spec=body["spec"], status=status
            )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Keep Nodes ready and run Pods until the block ends."""
        stop = threading.Event()
        loop = threading.Thread(target=self._run, args=(stop,), name="pod-runner")
        loop.start()
        try:
            yield
        finally:
            stop.set()
            loop.join()
            processes.stop(self.where, list(self._ports), patience_s=5)

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            for step in (self._beat, self._carry):
                try:
                    step()
                except (kube_errors.KubeError, errors.LabError) as error:
                    self.problems.append(str(error))
            stop.wait(POLL_S)

    def _beat(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        for name in self.nodes:
            simulated_kubelet.beat(self.api, name, now)

    def _carry(self) -> None:
        objects = Objects(self.api, SYSTEM)
        for pod in objects.all(POD):
            name = pod["metadata"]["name"]
            if pod["metadata"].get("deletionTimestamp"):
                processes.stop(self.where, [name])
                objects.delete(POD, name)
            elif pod["spec"].get("nodeName") and self._program(pod):
                self._serve(pod, name)

    def _program(self, pod: Json) -> Program | None:
        image = pod["spec"]["containers"][0]["image"]
        return next((p for p in self.programs if p.image in image), None)

    def _serve(self, pod: Json, name: str) -> None:
        folder = self.where.state / "pods" / name
        self._write_secrets(pod, folder)
        if processes.find(self.where, name) is None:
            self._ports.setdefault(name, self.first_port + len(self._ports))
            words, env = self._words(pod, name, folder)
            processes.start(self.where, name, words, env)
        is_ready = not ports.free(self._ports[name])
        self._report(pod, name, is_ready=is_ready)

    def _words(
        self, pod: Json, name: str, folder: pathlib.Path
    ) -> tuple[list[str], Mapping[str, str]]:
        """Return command and environment: of the container, with paths of this host."""
        program = self._program(pod)
        assert program is not None
        container = pod["spec"]["containers"][0]
        account = pod["spec"]["serviceAccountName"]
        kubeconfig = folder / "kubeconfig"
        admin = control_plane.admin_kubeconfig(self.where)
        cluster.service_account_kubeconfig(
            self.api, admin, (SYSTEM, account), kubeconfig
        )
        arguments = [
            argument.replace("/etc/config", str(folder)).replace(
                "$(HOST_IP)", ports.LOOPBACK
            )
            for argument in container["args"]
            if not argument.startswith("--secure-port")
        ]
        arguments += [f"--kubeconfig={kubeconfig}"]
        arguments += [f"--secure-port={self._ports[name]}"]
        arguments += [f"--authentication-kubeconfig={kubeconfig}"]
        arguments += [f"--authorization-kubeconfig={kubeconfig}"]
        env = {
            item["name"]: item["value"]
            for item in container.get("env", ())
            if "value" in item
        }
        return [*program.command, *arguments], env

    def _write_secrets(self, pod: Json, folder: pathlib.Path) -> None:
        """Write the keys of mounted Secrets, also later ones, as a kubelet does."""
        folder.mkdir(parents=True, exist_ok=True)
        for volume in pod["spec"].get("volumes", ()):
            if "secret" in volume:
                name = volume["secret"]["secretName"]
                secret = Objects(self.api, SYSTEM).get(SECRET, name)
                for key, value in (secret or {}).get("data", {}).items():
                    part = folder / f".{key}"
                    part.write_bytes(base64.b64decode(value))
                    part.replace(folder / key)

    def _report(self, pod: Json, name: str, *, is_ready: bool) -> None:
        value = "True" if is_ready else "False"
        rows = pod.get("status", {}).get("conditions", [])
        if [row["status"] for row in rows if row["type"] == "Ready"] == [value]:
            return
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        kept = [row for row in rows if row["type"] not in ("Ready", "ContainersReady")]
        conditions = [
            {"type": kind, "status": value, "lastTransitionTime": now}
            for kind in ("Ready", "ContainersReady")
        ]
        body = {
            "status": {
                "phase": "Running",
                "startTime": now,
                "conditions": [*kept, *conditions],
            }
        }
        patch(self.api, name, body)


def patch(api: client.Api, name: str, body: Mapping[str, object]) -> None:
    """Change the status of a Pod.

    Raises:
        KubeError: the API server rejected it, or does not answer.
    """
    api.patch(
        POD,
        name,
        json.dumps(body).encode(),
        SYSTEM,
        subresource="status",
        timeout_s=simulated_kubelet.TIMEOUT_S,
    )
