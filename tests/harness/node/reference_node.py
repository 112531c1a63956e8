"""The node service of cinder-csi-plugin, on a machine of loop devices.

It reads /dev and the link-local metadata service: it gets a mount namespace in which
/dev is the machine's, and a network namespace with that service.
"""

import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping

from lib.lab.storage import loop_disks, metadata_service

GROUP = "reference"
"""Of the programs that must be built."""
PROGRAM = "cinder-csi-plugin"
_ADDRESS = "169.254.169.254"
_SCRIPT = """\
set -e
mount --rbind "$1" /dev
ip link set lo up
ip address add {address}/32 dev lo
cd "$2"
"$3" -m http.server --bind {address} 80 >/dev/null 2>&1 &
shift 3
exec "$@"
"""
_DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
"""Source: Linux Documentation/admin-guide/devices.txt."""


def command(
    program: pathlib.Path,
    machine: loop_disks.Machine,
    folder: pathlib.Path,
    endpoint: pathlib.Path,
    instance_id: str,
) -> tuple[str, ...]:
    """Return the command that starts it. folder: for its files."""
    metadata = folder / metadata_service.PATH.lstrip("/")
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_bytes(metadata_service.document(instance_id, "nova"))
    conf = folder / "cloud.conf"
    conf.write_text('[Metadata]\nsearch-order = "metadataService"\n')
    for name, number in _DEVICES.items():
        with contextlib.suppress(FileExistsError):
            node = machine.dev / name
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(*number))
    unshare = ("unshare", "--mount", "--net", "--propagation", "unchanged", "--")
    script = _SCRIPT.format(address=_ADDRESS)
    surroundings = (str(machine.dev), str(folder), sys.executable)
    return (
        *(*unshare, "sh", "-c", script, "sh", *surroundings),
        str(program),
        f"--endpoint=unix://{endpoint}",
        f"--cloud-config={conf}",
        "--provide-controller-service=false",
        "--v=4",
    )


def start(
    words: tuple[str, ...], env: Mapping[str, str], log: pathlib.Path
) -> "subprocess.Popen[bytes]":
    """Start a program as the head of a process group of its own."""
    with log.open("ab") as opened:
        return subprocess.Popen(
            words, env=dict(env), stdout=opened, stderr=opened, start_new_session=True
        )


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program and what its group still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
