"""Where `./pants` puts its sandboxes: in memory where there is room, else on disk."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

SCRIPT = "build-support/sandboxes.sh"
# What is mounted, the size needed in KiB, and whether sandboxes are in memory.
CASES = {
    "a large tmpfs": ("tmpfs {} tmpfs rw,nosuid,nodev 0 0", 1, True),
    "one without its options": ("tmpfs {} tmpfs rw 0 0", 1, True),
    "a tmpfs that starts no programs": ("tmpfs {} tmpfs rw,noexec 0 0", 1, False),
    "a tmpfs that is only read": ("tmpfs {} tmpfs ro,nosuid 0 0", 1, False),
    "a small tmpfs": ("tmpfs {} tmpfs rw 0 0", 1 << 50, False),
    "a disk": ("/dev/vda {} ext4 rw 0 0", 1, False),
    "a tmpfs somewhere else": ("tmpfs {}/else tmpfs rw 0 0", 1, False),
    "a disk mounted over a tmpfs": (
        "tmpfs {} tmpfs rw 0 0\n/dev/vda {} ext4 rw 0 0",
        1,
        False,
    ),
    "nothing": ("", 1, False),
}


def folder_of(memory: pathlib.Path, mounted: str, kib: int) -> str:
    mounts = memory.parent / f"{memory.name}.mounts"
    mounts.write_text(mounted.replace("{}", str(memory)) + "\n")
    return subprocess.run(
        [SCRIPT, str(memory), str(mounts), str(kib)],
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    ).stdout.strip()


@pytest.mark.parametrize("case", CASES)
def test_sandboxes_are_in_memory_where_there_is_room(
    case: str, tmp_path: pathlib.Path
) -> None:
    mounted, kib, in_memory = CASES[case]
    memory = tmp_path / "shm"
    memory.mkdir()
    folder = folder_of(memory, mounted, kib)
    print(f"{case:32} {'in memory' if folder else 'on disk'}")
    expected = str(memory / f"pants-{os.getuid()}") if in_memory else ""
    assert folder == expected
    assert [str(path) for path in memory.iterdir()] == [expected] * in_memory


def test_what_a_killed_pants_left_goes_after_a_day(tmp_path: pathlib.Path) -> None:
    memory = tmp_path / "shm"
    folder = memory / f"pants-{os.getuid()}"
    hour = 3600
    ages = {
        "pants-sandbox-old": 25 * hour,
        "pants-sandbox-new": 23 * hour,
        "pants-sandbox-run": 25 * hour,
        "immutable_inputs": 25 * hour,  # read by Pants' daemon as long as it runs
    }
    for name, age in ages.items():
        (folder / name).mkdir(parents=True)
        then = time.time() - age
        os.utime(folder / name, (then, then))
    with subprocess.Popen(
        [sys.executable, "-c", "input()"],
        env={"PYTHONPATH": str(folder / "pants-sandbox-run")},
        stdin=subprocess.PIPE,
    ) as running:
        assert folder_of(memory, "tmpfs {} tmpfs rw 0 0", 1) == str(folder)
        running.communicate(b"\n", timeout=900)
    left = {path.name for path in folder.iterdir()}
    assert left == {"pants-sandbox-new", "pants-sandbox-run", "immutable_inputs"}
    assert folder_of(memory, "tmpfs {} tmpfs rw 0 0", 1) == str(folder)
    left = {path.name for path in folder.iterdir()}
    assert left == {"pants-sandbox-new", "immutable_inputs"}


def test_a_folder_of_someone_else_is_not_used(tmp_path: pathlib.Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    folder = tmp_path / "shm" / "pants-0"
    folder.mkdir(parents=True)
    os.chown(folder, 65534, 65534)
    assert folder_of(folder.parent, "tmpfs {} tmpfs rw 0 0", 1) == ""
