"""Runs the packaged tool with a real node, and finds what the node has left."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator, Mapping

import psutil

from lib.lab import places
from lib.lab.pods import host_keeper
from lib.lab.run import processes, waiting
from lib.lab.storage import loop_disks, node_keeper
from tests.harness.daemons import lab_tool


@contextlib.contextmanager
def short_environment(mine: places.Places, columns: int) -> Iterator[Mapping[str, str]]:
    """Yield the environment of the tool with a state folder of a short path.

    A socket of csi-node is below it. See `lab_tool.environment`; the folder is removed.
    """
    with tempfile.TemporaryDirectory(prefix="m") as folder:
        yield {**lab_tool.environment(mine, columns), "XDG_STATE_HOME": folder}


class NodeTool(lab_tool.LabTool):
    """The packaged tool, with a lab that has a real node."""

    def keeper(self) -> psutil.Process:
        """Return the process that owns the mount namespace of the node."""
        process = node_keeper.find(self.where) or host_keeper.find(self.where)
        assert process is not None
        return process

    def check_down_without_keeper(self) -> None:
        """Kill the keeper, with a volume mounted; the lab's folder is removed."""
        assert self.mounts() != []
        self.keeper().kill()
        assert self.run("down", "--wipe")[0] == 0
        waiting.until("no loop device and no mount is left", self.is_clean)
        assert processes.names(self.where) == ()
        assert self.of_the_node() == []
        assert not self.where.state.exists()

    def mounts(self) -> list[str]:
        """Return all mounts below the lab's folder, in any mount namespace."""
        shown = set()
        for file in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
            with contextlib.suppress(OSError):
                targets = [line.split(" ")[4] for line in file.read_text().splitlines()]
                shown |= {t for t in targets if t.startswith(f"{self.where.state}/")}
        return sorted(shown)

    def is_clean(self) -> bool:
        """Report whether no loop device and no mount is left."""
        return not loop_disks.backed_by(self.where.state) and not self.mounts()

    def of_the_node(self) -> list[psutil.Process]:
        """Return all processes of the node: its programs, and containers below them."""
        own = pathlib.Path("/proc/self/ns/mnt").readlink()
        state = str(self.where.state)
        processes = []
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error, OSError):
                namespace = pathlib.Path(f"/proc/{process.pid}/ns/mnt").readlink()
                is_ours = any(state in word for word in process.info["cmdline"] or ())
                if namespace != own and is_ours:
                    processes += [process, *process.children(recursive=True)]
        return processes
