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
from lib.lab.run import processes
from lib.lab.storage import storage_node
from tests.harness.csi import csi_keeper
from tests.harness.node import volume_users

PODS = 20
ROUNDS = 3
SEED = 7
LIVES_S = (0.5, 8.0)


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
    for round_ in range(1, ROUNDS):
        with keeper.killing():
            user.delete(*names(round_ - 1))
            create(user, round_)
            what = f"round {round_}: {PODS} pods have written, under kills"
            user.until(what, functools.partial(user.has_written, *names(round_)))
    user.note("csi-node or kubelet killed", keeper.kills)
    assert keeper.kills >= ROUNDS
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
    del keeper
    refused = tmp_path / "refused"
    reached = wrap_mount(user.node, tmp_path, refused)
    refused.touch()
    kill(user.node)
    user.claim("between", "ext4")
    user.pod("between-1", "between")
    user.until("csi-node is about to publish the volume", reached.exists)
    kill(user.node)
    refused.unlink()
    user.until("the pod has written", lambda: user.has_written("between-1"))
    _, volume_id = user.volume("between")
    log = (user.node.where.log / f"{csi_node.NAME}.log").read_text()
    entries = [line for line in log.splitlines() if f'"{volume_id}"' in line]
    actions = [json.loads(line).get("operation") for line in entries]
    assert actions.count("MakeFileSystem") == 1
    assert actions.count("MountDisk") == 1
    assert actions.count("Bind") == 1
    user.delete("between-1")
    user.pod("between-2", "between")
    user.until("the next pod has written", lambda: user.has_written("between-2"))
    assert user.lines("between-2") == ["between-1", "written"]
    user.delete("between-2")
    print(user.table())


def wrap_mount(
    node: storage_node.StorageNode, folder: pathlib.Path, refused: pathlib.Path
) -> pathlib.Path:
    """Have bind mounts fail while a file exists, from csi-node's next start on.

    Return the file that shows that one was refused.
    """
    reached, path = folder / "reached", node.settings.env["PATH"]
    program = folder / "mount"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *bind*) if [ -e {refused} ]; then touch {reached}; exit 32; fi;;'
        f' esac\nPATH={path} exec mount "$@"\n'
    )
    program.chmod(0o755)
    env = {**node.settings.env, "PATH": f"{folder}:{path}"}
    node.settings = dataclasses.replace(node.settings, env=env)
    return reached


def kill(node: storage_node.StorageNode) -> None:
    """Kill csi-node; the keeper starts another."""
    process = processes.find(node.where, csi_node.NAME)
    assert process is not None
    process.kill()
    process.wait()
