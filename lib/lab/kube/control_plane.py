"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager.

kube-scheduler is added by those who have pods to place.

Rules: `up` leaves alone what runs already and keeps data and certificates of an earlier
start; `down` ends the programs and keeps the data.
"""

import dataclasses
import datetime
import os
import pathlib
import subprocess
from collections.abc import Callable, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import programs
from lib.lab.kube import admin_api, first_objects, kube_arguments, kube_files
from lib.lab.run import ports, processes, progress

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
"""In the order in which they start."""

API = PROGRAMS[:2]
"""Those of the API alone."""

GROUP = "core"
"""Of the programs that must be built."""

SCHEDULER = "kube-scheduler"
SCHEDULER_GROUP = "scheduler"

_PORTS = (
    ("etcd", "etcd"),
    ("etcd", "etcd-peer"),
    ("kube-apiserver", "apiserver"),
    ("kube-controller-manager", "kube-controller-manager"),
)
_POLL_S = 0.1
"""Each look is a TLS handshake, while the API server needs the processor."""
_KUBECTL_S = 900
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramStatus:
    """The state of one program of the lab. pid: None when it does not run."""

    program: str
    pid: int | None
    ready: bool


def up(
    where: places.Places,
    shown: progress.Progress,
    *,
    api_arguments: Sequence[str] = (),
    manager_arguments: Sequence[str] = (),
    title: str = "Start the Kubernetes control plane",
) -> None:
    """Start what does not run; return when the default ServiceAccount exists.

    api_arguments, manager_arguments: more arguments for kube-apiserver and for
    kube-controller-manager, if they are not running yet. title: of the step shown.

    Raises:
        LabError: a program is not built, a port is taken, or one did not start.
    """
    programs.path(where, PROGRAMS[-1])
    with shown.step(title) as step:
        _start_api(where, step, api_arguments)
        _start_manager(where, step, manager_arguments)


def up_api(where: places.Places, shown: progress.Progress) -> None:
    """Start etcd and kube-apiserver alone: `up` adds the rest.

    Raises:
        LabError: as `up`.
    """
    with shown.step("Start etcd and kube-apiserver") as step:
        _start_api(where, step, ())


def _start_api(
    where: places.Places, step: progress.ProgressStep, arguments: Sequence[str]
) -> None:
    paths = {name: programs.path(where, name) for name in API}
    ports.require(where, _PORTS[:-1])
    kube_files.make_folders(where)
    is_new = first_objects.is_new(where)
    step.note("etcd")
    etcd = kube_arguments.etcd(where, paths["etcd"])
    processes.start(where, "etcd", etcd, kube_arguments.ENV)
    kube_files.write(where, datetime.datetime.now(datetime.UTC))
    _wait(where, "etcd")
    is_filled = is_new and first_objects.put(where)
    step.note("kube-apiserver")
    api = kube_arguments.apiserver(where, paths["kube-apiserver"], arguments)
    processes.start(where, "kube-apiserver", api, kube_arguments.ENV)
    _wait(where, "kube-apiserver")
    if is_new and not is_filled and not arguments:
        first_objects.keep(where)


def _start_manager(
    where: places.Places, step: progress.ProgressStep, arguments: Sequence[str]
) -> None:
    name = PROGRAMS[-1]
    ports.require(where, _PORTS[-1:])
    step.note(name)
    program = programs.path(where, name)
    manager = kube_arguments.controller_manager(where, program, arguments)
    processes.start(where, name, manager, kube_arguments.ENV)
    _wait(where, name)


def start_scheduler(where: places.Places, shown: progress.Progress) -> None:
    """Start kube-scheduler beside a control plane that is up; `down` stops both.

    Raises:
        LabError: it is not built, its port is taken, or it did not start.
    """
    program = programs.path(where, SCHEDULER)
    with shown.step("Start kube-scheduler"):
        ports.require(where, [(SCHEDULER, SCHEDULER)])
        processes.start(where, SCHEDULER, kube_arguments.scheduler(where, program))
        port = where.port(SCHEDULER)
        processes.wait_for(where, SCHEDULER, lambda: not ports.free(port))


def down(where: places.Places) -> None:
    """Stop the control plane; fine when it does not run. Its data is kept.

    etcd goes last: without it an API server takes long to end.
    """
    processes.stop(where, (*PROGRAMS[1:], SCHEDULER))
    processes.stop(where, PROGRAMS[:1])


def status(where: places.Places) -> tuple[ProgramStatus, ...]:
    """Return the state of each program."""
    ready = _ready(where)
    processes_ = {name: processes.find(where, name) for name in PROGRAMS}
    return tuple(
        ProgramStatus(
            name, process.pid if process else None, bool(process) and ready[name]()
        )
        for name, process in processes_.items()
    )


def admin_kubeconfig(where: places.Places) -> pathlib.Path:
    """Return the kubeconfig of a user with all permissions; made by `up`."""
    return kube_files.kubeconfig(where, "admin")


def apply_manifests(where: places.Places, text: str) -> None:
    """Make the cluster hold the objects of a manifest, by server-side apply.

    text: YAML, one or more documents.

    Raises:
        LabError: kubectl or the API server does not accept it.
    """
    kubectl = programs.path(where, "kubectl")
    try:
        answer = subprocess.run(
            [
                *(kubectl, "--kubeconfig", admin_kubeconfig(where)),
                *("--cache-dir", kube_files.room(where) / "kubectl-cache"),
                *("apply", "--server-side", "--force-conflicts"),
                *("--field-manager=mooring-lab", "--filename=-"),
            ],
            input=text,
            env={**os.environ, "KUBERC": "off"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_KUBECTL_S,
        )
    except subprocess.TimeoutExpired as error:
        raise errors.LabError(
            f"kubectl apply did not end within {_KUBECTL_S} s"
        ) from error
    if answer.returncode != 0:
        raise errors.LabError(f"cannot apply a manifest: {answer.stderr.strip()}")


def _wait(where: places.Places, name: str) -> None:
    processes.wait_for(where, name, _ready(where)[name], poll_s=_POLL_S)


def _ready(where: places.Places) -> dict[str, Callable[[], bool]]:
    """Return for each program the question whether it serves."""
    return {
        "etcd": lambda: admin_api.serves(where.port("etcd"), "/health"),
        "kube-apiserver": lambda: admin_api.answers(where, "/readyz"),
        "kube-controller-manager": lambda: admin_api.answers(where, _DEFAULT_ACCOUNT),
    }
