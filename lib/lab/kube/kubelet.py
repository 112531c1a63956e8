"""A real kubelet with containerd, as a Node of the lab's own control plane.

It runs with --cloud-provider=external: the Node registers with the taint and without
the addresses that a cloud controller manager takes away and brings.
"""

import contextlib
import datetime
import http.client
import json
import os
import pathlib
import platform
import subprocess
from collections.abc import Mapping

import psutil

from lib.lab import errors, places
from lib.lab.artifacts import container_tools, oci_image, programs
from lib.lab.kube import (
    admin_api,
    control_plane,
    kube_files,
    kubelet_files,
    node_host,
    pki,
)
from lib.lab.run import ports, processes, progress

PROGRAMS = ("containerd", "kubelet")
"""In the order in which they start."""

GROUP = "node"
"""Of the programs that must be built."""

NODE = "lab-node"

_COMMAND_S = 900
_IMPORT_S = 900
"""Layers with thousands of files are unpacked."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's names of the machine types of `uname -m`."""


def unavailable(
    where: places.Places, env: Mapping[str, str] | None = None
) -> str | None:
    """Return in one sentence why this machine cannot be a node; None when it can."""
    env = os.environ if env is None else env
    reason = node_host.unavailable(env)
    if reason is not None:
        return reason
    if container_tools.find(where, env) or container_tools.can_fetch(env):
        return None
    return "a node needs runc and CNI plugins; install both"


def build(where: places.Places, shown: progress.Progress) -> None:
    """Make what `up` needs.

    Raises:
        LabError: it could not be built.
    """
    programs.build(where, [GROUP], shown)
    if container_tools.find(where, os.environ) is None:
        with shown.step("Fetch runc and the CNI plugins") as step:
            container_tools.fetch(where, os.environ, step)


def up(
    where: places.Places,
    shown: progress.Progress,
    name: str = NODE,
    address: str = "",
) -> None:
    """Start the node, unless it runs; return when its Node is Ready.

    address: of the node, which this machine gets; pods in its network then have it as
    the address of their host. Empty: the Node has none until it is initialized.

    Raises:
        LabError: this machine cannot be a node, the lab's own control plane does not
            run, or something did not start.
    """
    reason = unavailable(where)
    if reason is not None:
        raise errors.LabError(reason)
    if not admin_api.answers(where, "/readyz"):
        raise errors.LabError(
            "a node needs the lab's own control plane; start it first"
        )
    with shown.step(f"Start the node {name}") as step:
        tools = container_tools.require(where, os.environ)
        port_names = [("kubelet", "kubelet"), ("kubelet", "kubelet-health")]
        ports.require(where, port_names)
        _make_folders(where)
        node_host.prepare(where, kubelet_files.kubelet_room(where))
        if address:
            node_host.add_address(where, address)
        step.note("containerd")
        _start_containerd(where, tools)
        step.note("kubelet")
        _start_kubelet(where, name, address)
        processes.wait_for(where, "kubelet", lambda: _node_ready(where, name))


def resume(where: places.Places, name: str, address: str = "") -> None:
    """Start the kubelet of a node that is up, if it was killed, and wait for it.

    address: as `up` had it.

    Raises:
        LabError: it did not start.
    """
    if processes.find(where, "kubelet") is not None:
        return
    _start_kubelet(where, name, address)

    def is_healthy() -> bool:
        return admin_api.serves(where.port("kubelet-health"), "/healthz")

    processes.wait_for(where, "kubelet", is_healthy)


def _make_folders(where: places.Places) -> None:
    for folder in (
        kubelet_files.containerd_room(where) / "cni",
        kubelet_files.kubelet_room(where),
        node_host.room(where) / "pod-logs",
    ):
        folder.mkdir(parents=True, exist_ok=True)


def _start_containerd(where: places.Places, tools: container_tools.Tools) -> None:
    room = kubelet_files.containerd_room(where)
    config = room / "config.toml"
    config.write_text(kubelet_files.containerd(where, tools))
    (room / "cni" / "10-lab.conflist").write_text(kubelet_files.network(where))
    program = programs.path(where, "containerd")
    # It looks for its shim on PATH.
    search = f"{program.parent}:{os.environ.get('PATH', os.defpath)}"
    command = (program, "--config", config)
    processes.start(where, "containerd", command, env={"PATH": search})
    processes.wait_for(where, "containerd", lambda: _containerd_serves(where))
    image = oci_image.archive(
        kubelet_files.PAUSE_IMAGE,
        "pause",
        programs.path(where, "pause").read_bytes(),
        _ARCHITECTURES.get(platform.machine(), platform.machine()),
    )
    file = room / "pause.tar"
    file.write_bytes(image)
    load_image(where, file)


def load_image(where: places.Places, file: pathlib.Path) -> None:
    """Import an archive into containerd, which must run.

    Raises:
        LabError: containerd rejects it.
    """
    done = _ctr(where, "images", "import", str(file), timeout_s=_IMPORT_S)
    if done.returncode != 0:
        raise errors.LabError(f"containerd takes no image: {done.stderr.strip()}")


def _start_kubelet(where: places.Places, name: str, address: str = "") -> None:
    user = kubelet_files.certificate(name)
    subject = pki.Subject(f"system:node:{name}", "system:nodes", (name, ports.LOOPBACK))
    now = datetime.datetime.now(datetime.UTC)
    pair = kube_files.issued(where, user, subject, now)
    kubeconfig = kube_files.write_kubeconfig(where, user, pki.Credentials(pair))
    config = node_host.room(where) / "kubelet.yaml"
    config.write_text(kubelet_files.kubelet(where, name))
    processes.start(
        where,
        "kubelet",
        (
            programs.path(where, "kubelet"),
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={kubelet_files.kubelet_room(where)}",
            f"--hostname-override={name}",
            "--cloud-provider=external",
            *([f"--node-ip={address}"] if address else []),
            "--v=2",
        ),
    )


def _node_ready(where: places.Places, name: str) -> bool:
    code, body = admin_api.ask(where, "GET", f"/api/v1/nodes/{name}")
    if code != http.client.OK:
        return False
    conditions = json.loads(body)["status"].get("conditions", ())
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in conditions
    )


def _containerd_serves(where: places.Places) -> bool:
    return _ctr(where, "version").returncode == 0


def _ctr(
    where: places.Places, *words: str, timeout_s: float = _COMMAND_S
) -> subprocess.CompletedProcess[str]:
    """Ask containerd."""
    socket = str(kubelet_files.socket(where))
    program = str(programs.path(where, "ctr"))
    command = (program, "--address", socket, "--namespace", "k8s.io", *words)
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "ctr did not answer in time")


def status(where: places.Places) -> tuple[control_plane.ProgramStatus, ...]:
    """Return the state of each program of the node."""
    ready = {
        "containerd": lambda: _containerd_serves(where),
        "kubelet": lambda: admin_api.serves(where.port("kubelet-health"), "/healthz"),
    }
    processes_ = {name: processes.find(where, name) for name in PROGRAMS}
    return tuple(
        control_plane.ProgramStatus(
            name, process.pid if process else None, bool(process) and ready[name]()
        )
        for name, process in processes_.items()
    )


def down(where: places.Places) -> None:
    """Stop the node with its pods and undo what it changed; fine when there is none.

    Raises:
        LabError: a mount is left, so the lab's folder must not be removed.
    """
    if not node_host.room(where).exists():
        return
    processes.stop(where, ["kubelet"])
    if processes.find(where, "containerd") is not None:
        _remove_pods(where)
    processes.stop(where, ["containerd"])
    _kill_shims(kubelet_files.socket(where))
    node_host.restore(where)


def _remove_pods(where: places.Places) -> None:
    """End every container."""
    for words in (("tasks", "kill", "-s", "SIGKILL"), ("tasks", "rm", "-f")):
        for task in _ctr(where, "tasks", "ls", "-q").stdout.split():
            _ctr(where, *words, task)
    for container in _ctr(where, "containers", "ls", "-q").stdout.split():
        _ctr(where, "containers", "rm", container)


def _kill_shims(socket: pathlib.Path) -> None:
    """Kill the shims that containerd has left, and the containers below them."""
    for shim in _shims(socket):
        with contextlib.suppress(psutil.Error):
            for process in (shim, *shim.children(recursive=True)):
                process.kill()


def _shims(socket: pathlib.Path) -> tuple[psutil.Process, ...]:
    """Return the shims that belong to the containerd at `socket`."""
    name = "containerd-shim-runc-v2"
    running = psutil.process_iter(["cmdline"])
    return tuple(
        process
        for process in running
        if (words := process.info["cmdline"] or [""])
        and pathlib.Path(words[0]).name == name
        and str(socket) in words
    )
