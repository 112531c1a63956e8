"""Ansible's modules for oVirt as judges of a simulated engine: programs of others.

The collection `ovirt.ovirt` out of the package `ansible`, and ansible-core, pinned by
hash in `*.lock.txt`, in an environment of their own. They are under the GPL: used by
tests, and in no program and no image. The SDK is that of the test's own environment.
"""

import dataclasses
import fcntl
import hashlib
import importlib.resources
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

_PACKAGE = "tests.harness.zvirt"
_COLLECTION = "ansible_collections/ovirt/"
_SDK = ("ovirtsdk4", "pycurl", "curl")
_LIMIT_S = 900


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One call of a module. arguments: without `auth`. calls: how often it is called.

    fails: a part of the message with which the last call fails; empty: it succeeds.
    """

    title: str
    module: str
    arguments: Mapping[str, object]
    calls: int = 2
    fails: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of a module returned."""

    task: Task
    number: int
    changed: bool
    failed: bool
    message: str
    facts: Mapping[str, Any]


def _lock(name: str) -> str:
    return (importlib.resources.files(_PACKAGE) / name).read_text()


def install(cache: pathlib.Path) -> pathlib.Path:
    """Install the judges unless they are there; return their folder."""
    locks = _lock("ansible.lock.txt"), _lock("collection.lock.txt")
    digest = hashlib.sha256("".join((*locks, sys.version)).encode()).hexdigest()[:12]
    folder = cache / "ansible" / digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(".new")
            shutil.rmtree(part, ignore_errors=True)
            _install(part, *locks)
            part.rename(folder)
    return folder


def _install(part: pathlib.Path, core: str, collection: str) -> None:
    part.mkdir()
    (part / "core.txt").write_text(core)
    (part / "collection.txt").write_text(collection)
    pip = [sys.executable, "-m", "venv", str(part / "pip")]
    subprocess.run(pip, check=True, timeout=_LIMIT_S)
    installer = [str(part / "pip/bin/python"), "-m", "pip", "--quiet"]
    words = ["install", "--require-hashes", "--no-deps", "--target", str(part / "core")]
    subprocess.run(
        [*installer, *words, "-r", str(part / "core.txt")], check=True, timeout=_LIMIT_S
    )
    words = ["download", "--require-hashes", "--no-deps", "--dest", str(part / "wheel")]
    subprocess.run(
        [*installer, *words, "-r", str(part / "collection.txt")],
        check=True,
        timeout=_LIMIT_S,
    )
    (wheel,) = (part / "wheel").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(_COLLECTION)]
        archive.extractall(part / "collections", names)
    for name in ("pip", "wheel"):
        shutil.rmtree(part / name)


def _link_sdk(folder: pathlib.Path) -> None:
    """Link the SDK of this process into a folder, and nothing else of it."""
    folder.mkdir()
    for name in _SDK:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = pathlib.Path(spec.origin).resolve()
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
        libraries = source.parent / f"{name}.libs"
        if libraries.exists():
            (folder / libraries.name).symlink_to(libraries)


def run(
    judges: pathlib.Path,
    folder: pathlib.Path,
    login: Mapping[str, object],
    tasks: Sequence[Task],
) -> list[Outcome]:
    """Carry out tasks in one playbook. login: arguments of ovirt_auth.

    folder: created for files of the run.
    """
    folder.mkdir(exist_ok=True)
    _link_sdk(folder / "sdk")
    results = folder / "results.json"
    plays = _playbook(login, tasks, results)
    (folder / "playbook.json").write_text(json.dumps(plays))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": f"{folder / 'sdk'}:{judges / 'core'}",
        "ANSIBLE_COLLECTIONS_PATH": str(judges / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "no_proxy": "127.0.0.1",
    }
    # Without the packages of this process.
    python = os.path.realpath(sys.executable)
    interpreter = f"ansible_python_interpreter={python}"
    done = subprocess.run(
        [
            *(python, "-m", "ansible", "playbook", "-i", "localhost,"),
            *("-e", interpreter, str(folder / "playbook.json")),
        ],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert results.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    rows = json.loads(results.read_text())
    calls = [(task, number) for task in tasks for number in range(1, task.calls + 1)]
    return [_outcome(*call, row) for call, row in zip(calls, rows, strict=True)]


def _playbook(
    login: Mapping[str, object], tasks: Sequence[Task], results: pathlib.Path
) -> list[Mapping[str, object]]:
    steps: list[Mapping[str, object]] = [
        {"name": "log in", "ovirt.ovirt.ovirt_auth": login}
    ]
    names: list[str] = []
    for task in tasks:
        own = {} if task.module == "ovirt_auth" else {"auth": "{{ ovirt_auth }}"}
        arguments: dict[str, object] = {**task.arguments, **own}
        if not task.module.endswith("_info") and task.module not in _WITHOUT_POLLS:
            arguments["poll_interval"] = 1
        for number in range(1, task.calls + 1):
            names.append(f"result_{len(names)}")
            steps.append(
                {
                    "name": f"{task.title} {number}",
                    f"ovirt.ovirt.{task.module}": arguments,
                    "register": names[-1],
                    "ignore_errors": True,
                }
            )
    content = "{{ [" + ", ".join(names) + "] | to_json }}"
    copy = {"dest": str(results), "content": content}
    steps.append({"name": "write results", "ansible.builtin.copy": copy})
    logout = {"state": "absent", "ovirt_auth": "{{ ovirt_auth }}"}
    steps.append({"name": "log out", "ovirt.ovirt.ovirt_auth": logout})
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": steps,
    }
    return [play]


_WITHOUT_POLLS = ("ovirt_event", "ovirt_auth")


def _outcome(task: Task, number: int, row: Mapping[str, object]) -> Outcome:
    return Outcome(
        task,
        number,
        bool(row.get("changed")),
        bool(row.get("failed")),
        str(row.get("msg", "")),
        row,
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table of modules, actions and results."""
    lines = []
    for outcome in outcomes:
        state = "failed" if outcome.failed else "changed" if outcome.changed else "ok"
        words = (outcome.task.module, outcome.task.title, str(outcome.number), state)
        lines.append(f"{words[0]:28} {words[1]:36} {words[2]} {words[3]}")
    return "\n".join(lines)
