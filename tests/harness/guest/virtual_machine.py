"""A virtual machine, emulated by QEMU: disks come and go, and an agent obeys."""

import base64
import contextlib
import dataclasses
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf import message

from lib.lab import errors, places
from lib.lab.artifacts import debian
from lib.lab.run import waiting
from tests.harness.guest import disk_server, guest_packages
from tests.harness.guest.qemu_socket import QemuSocket

PRODUCT_UUID = "0f0d3c1e-7b6a-4d2c-9e57-3b1f5a2c8d44"
QUEUE = 16
"""Requests that a served disk has under way at most."""
M = TypeVar("M", bound=message.Message)


@dataclasses.dataclass(frozen=True, slots=True)
class GuestDisk:
    """A disk that is plugged. name: of its device and of its block node."""

    name: str
    file: pathlib.Path


class VirtualMachine:
    """A running guest. Requests to the agent are answered one after the other."""

    def __init__(self, monitor: QemuSocket, agent: QemuSocket) -> None:
        self._monitor = monitor
        self._agent = agent
        self._number = 0
        monitor.begin()

    def plug(self, driver: str, file: pathlib.Path, serial: str) -> GuestDisk:
        """Plug a disk. driver: "virtio-blk-pci" or "scsi-hd"."""
        source = {"driver": "file", "filename": str(file)}
        return self._plug(driver, file, serial, source)

    def plug_served(self, server: disk_server.DiskServer, serial: str) -> GuestDisk:
        """Plug a disk that a server has, on virtio-blk; its queue is soon full."""
        address = {"type": "unix", "path": str(server.socket)}
        source = {"driver": "nbd", "server": address, "export": disk_server.EXPORT}
        queue = {"queue-size": QUEUE}
        return self._plug("virtio-blk-pci", server.socket, serial, source, **queue)

    def _plug(
        self,
        driver: str,
        file: pathlib.Path,
        serial: str,
        source: object,
        **options: object,
    ) -> GuestDisk:
        self._number += 1
        name = f"disk{self._number}"
        node = {"node-name": name}
        self._monitor.execute("blockdev-add", driver="raw", file=source, **node)
        if driver == "scsi-hd":
            # libvirt gives a SCSI disk its serial twice: pages 80 and 83.
            options |= {"bus": "scsi0.0", "device_id": serial}
        device = {"driver": driver, "drive": name, "id": name, "serial": serial}
        self._monitor.execute("device_add", **device, **options)
        return GuestDisk(name, file)

    def unplug(self, disk: GuestDisk) -> None:
        """Unplug a disk, and wait until the guest has let it go."""
        self._monitor.execute("device_del", id=disk.name)
        while True:
            event = self._monitor.receive()
            data = event.get("data", {})
            is_deleted = event.get("event") == "DEVICE_DELETED"
            if is_deleted and data.get("device") == disk.name:
                break
        self._monitor.execute("blockdev-del", **{"node-name": disk.name})

    def resize(self, disk: GuestDisk, size_bytes: int) -> None:
        """Resize a plugged disk."""
        node = {"node-name": disk.name}
        self._monitor.execute("block_resize", size=size_bytes, **node)

    def request(self, do: str, *arguments: object) -> None:
        """Send a request to the agent."""
        self._agent.send({"do": do, "arguments": arguments})

    def answer(self) -> dict[str, Any]:
        """Return the agent's next answer.

        Raises:
            LabError: the agent failed.
        """
        answer = self._agent.receive()
        if "error" in answer:
            raise errors.LabError(f"the agent: {answer['error']}")
        return answer

    def run(self, command: str) -> str:
        """Run a command of the guest's shell; return its output.

        Raises:
            LabError: it failed.
        """
        self.request("run", command)
        answer = self.answer()
        if answer["code"] != 0:
            raise errors.LabError(f"{command}: {answer['output']}")
        return str(answer["output"]).strip()

    def start_driver(self, *flags: str) -> None:
        """Start csi-node, in place of the one that runs; return when it serves."""
        words = ("python3.11", "-m", "csi_node.main", "--cloud=openstack")
        self.request("start", [*words, "--endpoint=unix:///run/csi.sock", *flags])
        self.answer()

    def begin(self, method: str, request: message.Message) -> None:
        """Begin a call of csi-node, "Node/NodeStageVolume" or the like."""
        body = base64.b64encode(request.SerializeToString()).decode()
        self.request("call", method, body)

    def finish(self, kind: type[M]) -> M:
        """Return the answer to the call that was begun.

        Raises:
            LabError: with code and details.
        """
        answer = self.answer()
        if answer["code"] != "OK":
            raise errors.LabError(f"{answer['code']}: {answer['details']}")
        return kind.FromString(base64.b64decode(answer["body"]))

    def call(self, method: str, request: message.Message, kind: type[M]) -> M:
        """Call a method of csi-node.

        Raises:
            LabError: with code and details.
        """
        self.begin(method, request)
        return self.finish(kind)

    def wait_ready(self) -> None:
        """Wait until the agent listens."""
        if not self.answer().get("ready"):
            raise errors.LabError("the agent of the guest does not begin as it should")


def _command(
    where: places.Places, archive: pathlib.Path, folder: pathlib.Path
) -> list[str]:
    tree = guest_packages.host_tree(where)
    sockets = "server=on,wait=off"
    return [
        *(str(tree / "usr/bin/qemu-system-x86_64"), "-machine", "pc", "-accel", "tcg"),
        # What the wheels in the PEX need, and no instruction that is slow to emulate.
        *("-cpu", "Nehalem", "-m", "1024", "-smp", "1"),
        *("-nodefaults", "-display", "none", "-no-reboot"),
        *("-L", f"{tree}/usr/share/seabios", "-L", f"{tree}/usr/share/qemu"),
        *("-kernel", str(guest_packages.kernel(where)), "-initrd", str(archive)),
        *("-append", "console=ttyS0 rdinit=/init panic=-1 mitigations=off"),
        *("-serial", f"file:{folder}/console.log"),
        *("-serial", f"unix:{folder}/agent.sock,{sockets}"),
        *("-qmp", f"unix:{folder}/qmp.sock,{sockets}"),
        *("-smbios", f"type=1,product=OpenStack Nova,uuid={PRODUCT_UUID}"),
        *("-device", "virtio-scsi-pci,id=scsi0"),
    ]


@contextlib.contextmanager
def running(
    where: places.Places, archive: pathlib.Path, folder: pathlib.Path
) -> Iterator[VirtualMachine]:
    """Run a guest for as long as the block lasts. folder: for sockets and console.log.

    Raises:
        LabError: it does not start.
    """
    env = debian.environment(guest_packages.host_tree(where), {})
    with (folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(
            _command(where, archive, folder), env=env, stdout=log, stderr=log
        )
    paths = [folder / "qmp.sock", folder / "agent.sock"]
    try:
        waiting.until("QEMU listens", lambda: all(path.exists() for path in paths))
        with contextlib.ExitStack() as stack:
            monitor, agent = (QemuSocket(path) for path in paths)
            stack.callback(monitor.close)
            stack.callback(agent.close)
            machine = VirtualMachine(monitor, agent)
            machine.wait_ready()
            yield machine
    finally:
        process.kill()
        process.wait()
