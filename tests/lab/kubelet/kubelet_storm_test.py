"""Many volumes in parallel, while csi-node and the kubelet are killed at random."""

import dataclasses
import functools
import json
import pathlib
import random
from collections.abc import Iterator

import pytest

from lib.lab.daemons import csi_node
from lib.lab.kube import kube_objects
from lib.lab.storage import storage_node
from tests.harness.csi import csi_keeper
from tests.harness.node import volume_users

PODS = 20
ROUNDS = 3
SEED = 7
LIVES_S = (0.5, 8.0)
REGISTERED = "registered with the kubelet"
PUBLISHED = "/volumes/kubernetes.io~csi/"
"""Part of each path at which a kubelet has a volume published for a pod."""


@pytest.fixture()
def keeper(user: volume_users.VolumeUser) -> Iterator[csi_keeper.CsiKeeper]:
    """Start again what is killed."""
    chance = random.Random(SEED)  # noqa: S311 - when to kill
    victims = (csi_node.NAME, "kubelet")
    new_keeper = csi_keeper.CsiKeeper(
        user.node.where, user.node.start, chance, victims, LIVES_S
    )
    yield new_keeper
    new_keeper.end()


def names(round_: int) -> list[str]:
    return [f"p{number}-{round_}" for number in range(PODS)]


def create(user: volume_users.VolumeUser, round_: int) -> None:
    """Create one pod for each claim."""
    for number, name in enumerate(names(round_)):
        user.pod(name, f"c{number}")


def test_twenty_pods_in_parallel_survive_kills(
    user: volume_users.VolumeUser, keeper: csi_keeper.CsiKeeper
) -> None:
    """Each volume has the lines of all its pods, in order, and nothing else."""
    for number in range(PODS):
        user.claim(f"c{number}", ("ext4", "xfs")[number % 2])
    create(user, 0)
    user.until(f"{PODS} pods have written", lambda: user.has_written(*names(0)))
    before = count(user.node, REGISTERED)
    for round_ in range(1, ROUNDS):
        with keeper.killing():
            user.delete(*names(round_ - 1))
            create(user, round_)
            what = f"round {round_}: {PODS} pods have written, under kills"
            user.until(what, functools.partial(user.has_written, *names(round_)))
    user.note("csi-node or kubelet killed", keeper.kills)
    assert keeper.kills >= ROUNDS
    registrations = count(user.node, REGISTERED) - before
    user.note("csi-node registered again", registrations)
    assert registrations > 0
    for number in range(PODS):
        lines = user.lines(f"p{number}-{ROUNDS - 1}")
        earlier = [f"p{number}-{round_}" for round_ in range(ROUNDS - 1)]
        assert lines == [*earlier, "written"]
    user.delete(*names(ROUNDS - 1))
    user.until("every pod is gone", lambda: not user.objects.all(kube_objects.POD))
    print(user.table())


def test_killed_between_stage_and_publish(
    user: volume_users.VolumeUser, keeper: csi_keeper.CsiKeeper, tmp_path: pathlib.Path
) -> None:
    """csi-node is killed when the volume is staged and must still be published."""
    refused = tmp_path / "refused"
    reached = wrap_mount(user.node, tmp_path, refused)
    refused.touch()
    keeper.kill(csi_node.NAME)
    user.claim("between", "ext4")
    user.pod("between-1", "between")
    user.until("csi-node is about to publish the volume", reached.exists)
    keeper.kill(csi_node.NAME)
    refused.unlink()
    user.until("the pod has written", lambda: user.has_written("between-1"))
    _, volume_id = user.volume("between")
    entries = [entry for entry in log_entries(user.node) if volume_id in entry.values()]
    actions = [entry.get("operation") for entry in entries]
    assert actions.count("MakeFileSystem") == 1
    assert actions.count("MountDisk") == 1
    assert actions.count("Bind") == 1
    user.delete("between-1")
    user.pod("between-2", "between")
    user.until("the next pod has written", lambda: user.has_written("between-2"))
    assert user.lines("between-2") == ["between-1", "written"]
    user.delete("between-2")
    print(user.table())


def log_entries(node: storage_node.StorageNode) -> list[dict[str, object]]:
    """Return the log entries of csi-node, of all its starts."""
    text = (node.where.log / f"{csi_node.NAME}.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def count(node: storage_node.StorageNode, message: str) -> int:
    """Return how often csi-node has logged a message."""
    return [entry["msg"] for entry in log_entries(node)].count(message)


def wrap_mount(
    node: storage_node.StorageNode, folder: pathlib.Path, refused: pathlib.Path
) -> pathlib.Path:
    """Have publishing mounts fail while a file exists, from csi-node's next start on.

    Return the file that shows that a mount was refused. Other bind mounts succeed: one
    of /dev belongs to the start of csi-node.
    """
    reached, path = folder / "reached", node.settings.env["PATH"]
    program = folder / "mount"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *bind*{PUBLISHED}*)\n'
        f"if [ -e {refused} ]; then touch {reached}; exit 32; fi;;\n"
        f'esac\nPATH={path} exec mount "$@"\n'
    )
    program.chmod(0o755)
    env = {**node.settings.env, "PATH": f"{folder}:{path}"}
    node.settings = dataclasses.replace(node.settings, env=env)
    return reached
