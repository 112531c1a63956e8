"""Loopback ports of this machine, inside the networks of the node's pods.

The lab's API server and cloud listen on the loopback address, which the catalog of the
cloud contains. A pod with a network of its own gets listeners on its own loopback
address, and what connects to them is relayed to the same port of this machine.
"""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from lib.lab import errors, places
from lib.lab.kube import node_host
from lib.lab.run import ports

POLL_S = 0.3
_CLONE_NEWNET = 0x40000000
"""Source: Linux include/uapi/linux/sched.h."""
_CHUNK_BYTES = 65536
_START_S = 30.0
_Result = TypeVar("_Result")


def networks(where: places.Places) -> Mapping[int, pathlib.Path]:
    """Return the network namespaces of the node's pods by inode, without that of the
    host."""
    own = os.stat("/proc/self/ns/net").st_ino
    mark = f"/{node_host.cgroup(where)}/"
    by_inode: dict[int, pathlib.Path] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended
            if mark in (folder / "cgroup").read_text():
                by_inode.setdefault(
                    (folder / "ns/net").stat().st_ino, folder / "ns/net"
                )
    by_inode.pop(own, None)
    return by_inode


@contextlib.contextmanager
def relayed(where: places.Places, numbers: Sequence[int]) -> Iterator["Relay"]:
    """Relay ports for as long as the block lasts, also for pods that start later.

    Connections are made in the network in which the calling thread is now.
    """
    relay = Relay(where, numbers)
    thread = threading.Thread(target=relay.run, name="pod-loopback")
    thread.start()
    try:
        yield relay
    finally:
        relay.stop()
        thread.join()


class Relay:
    """Listeners in all namespaces, served by one event loop in one thread."""

    def __init__(self, where: places.Places, numbers: Sequence[int]) -> None:
        self._where = where
        self._numbers = numbers
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._servers: dict[int, list[asyncio.Server]] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    def run(self) -> None:
        """Relay until `stop` is called."""
        try:
            self._loop.run_until_complete(self._follow())
        finally:
            self._loop.run_until_complete(self._disconnect())
            self._loop.close()

    def add(self, namespace: pathlib.Path, address: str) -> None:
        """Listen on an address of a namespace, too; called by another thread.

        Raises:
            OSError: a port is in use there.
        """
        opened = self._serve(listeners(namespace, self._numbers, address))
        asyncio.run_coroutine_threadsafe(opened, self._loop).result(_START_S)

    def stop(self) -> None:
        """Stop; called by another thread."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _follow(self) -> None:
        while not self._stopped.is_set():
            present = networks(self._where)
            # An open listener would keep the namespace of a deleted pod.
            for inode in [inode for inode in self._servers if inode not in present]:
                _close(self._servers.pop(inode))
            for inode, file in present.items():
                if inode not in self._servers:
                    await self._open(inode, file)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), POLL_S)
        for servers in self._servers.values():
            _close(servers)

    async def _open(self, inode: int, file: pathlib.Path) -> None:
        try:
            listening = listeners(file, self._numbers)
        except OSError:
            return  # the pod has ended, or its loopback address is not up yet
        self._servers[inode] = await self._serve(listening)

    async def _serve(self, listening: Sequence[socket.socket]) -> list[asyncio.Server]:
        return [
            await asyncio.start_server(self._relay, sock=each) for each in listening
        ]

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        port = writer.get_extra_info("sockname")[1]
        with contextlib.suppress(OSError), self._closing(writer):
            far_reader, far_writer = await asyncio.open_connection(ports.LOOPBACK, port)
            with self._closing(far_writer):
                await asyncio.gather(
                    _copy(reader, far_writer), _copy(far_reader, writer)
                )

    @contextlib.contextmanager
    def _closing(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._writers.add(writer)
        try:
            with contextlib.closing(writer):
                yield
        finally:
            self._writers.discard(writer)

    async def _disconnect(self) -> None:
        """End open connections: clients would wait for answers otherwise."""
        for writer in self._writers:
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK_BYTES):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


def _close(servers: Sequence[asyncio.Server]) -> None:
    for server in servers:
        server.close()


def listeners(
    namespace: pathlib.Path, numbers: Sequence[int], address: str = ports.LOOPBACK
) -> tuple[socket.socket, ...]:
    """Return sockets that listen on an address of a network namespace.

    Raises:
        LabError: the kernel refuses to enter it.
        OSError: it has ended, or a port is in use.
    """

    return within(
        namespace,
        lambda: tuple(socket.create_server((address, x)) for x in numbers),
    )


def within(namespace: pathlib.Path, call: Callable[[], _Result]) -> _Result:
    """Call a function in a network namespace; return its result.

    Raises:
        LabError: the kernel refuses to enter it.
        OSError: it has ended.
    """

    def enter() -> _Result:
        # The namespace is that of this thread alone, which ends with this function.
        libc = ctypes.CDLL(None, use_errno=True)
        with namespace.open() as file:
            if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
                reason = os.strerror(ctypes.get_errno())
                raise errors.LabError(f"no access to the network of a pod: {reason}")
        return call()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()
