"""A file system whose files stop answering on request: a program of its own.

Serves FUSE on a mount point until its parent ends; then the kernel fails everything
that waits. Commands on standard input: "writes" holds requests to write, "all" those to
read as well, "go" answers them. Each file of which a request is held is printed.

Source: Linux include/uapi/linux/fuse.h, protocol 7.31; Documentation/filesystems/fuse.
"""

import ctypes
import enum
import errno
import os
import select
import signal
import struct
import sys
import tempfile

_MINOR = 31
_MAX_WRITE = 128 * 1024
_BUFFER = 1024 * 1024
_DIRECT_IO = 1
_PR_SET_PDEATHSIG = 1
_HEADER = struct.Struct("<IIQQIIIHH")
_ROOT = 1
_FIRST = 2


class Operation(enum.IntEnum):
    """Requests that are answered; all others are refused with ENOSYS."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    OPEN = 14
    READ = 15
    WRITE = 16
    RELEASE = 18
    FSYNC = 20
    INIT = 26
    BATCH_FORGET = 42


_WRITES = {Operation.WRITE, Operation.FSYNC}
_HELD: dict[str, set[Operation]] = {
    "writes": _WRITES,
    "all": {Operation.READ, *_WRITES},
    "go": set(),
}


class FuseServer:
    """Serves `count` files named "0", "1", ... of one size."""

    def __init__(self, target: str, count: int, size: int) -> None:
        self._size = size
        self._files = [tempfile.TemporaryFile() for _ in range(count)]
        for file in self._files:
            file.truncate(size)
        self._held_operations: set[Operation] = set()
        self._held: list[bytes] = []
        self._fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        words = [word.encode() for word in ("hanging", target, "fuse", options)]
        if libc.mount(words[0], words[1], words[2], 0, words[3]) != 0:
            raise OSError(ctypes.get_errno(), f"mount FUSE on {target}")

    def run(self) -> None:
        """Serve until standard input ends."""
        while True:
            ready, _, _ = select.select([self._fuse, 0], [], [])
            if 0 in ready:
                line = os.read(0, 100).decode().strip()
                if not line:
                    return
                self._held_operations = _HELD[line]
                held, self._held = self._held, []
                for request in held:
                    self._take(request)
            if self._fuse in ready:
                self._take(os.read(self._fuse, _BUFFER))

    def _take(self, request: bytes) -> None:
        _, operation, unique, node, *_ = _HEADER.unpack_from(request)
        if operation in self._held_operations:
            print(node - _FIRST, flush=True)
            self._held.append(request)
            return
        if operation in (Operation.FORGET, Operation.BATCH_FORGET):
            return
        try:
            body = self._answer(operation, node, request[_HEADER.size :])
            head = struct.pack("<IiQ", 16 + len(body), 0, unique)
        except OSError as error:
            head, body = struct.pack("<IiQ", 16, -(error.errno or 5), unique), b""
        os.write(self._fuse, head + body)

    def _answer(self, operation: int, node: int, body: bytes) -> bytes:
        """Return the answer to a request; raises OSError for what is not served."""
        match operation:
            case Operation.INIT:
                return struct.pack(
                    "<IIIIHHIIHHI28x", 7, _MINOR, 0, 0, 16, 12, _MAX_WRITE, 1, 32, 0, 0
                )
            case Operation.LOOKUP:
                name = body.rstrip(b"\0").decode()
                if not name.isdigit() or int(name) >= len(self._files):
                    raise OSError(errno.ENOENT, "no such file")
                file = _FIRST + int(name)
                entry = struct.pack("<QQQQII", file, 0, 60, 60, 0, 0)
                return entry + self._attr(file)
            case Operation.GETATTR:
                return struct.pack("<QII", 60, 0, 0) + self._attr(node)
            case Operation.OPEN:
                return struct.pack("<QIi", 0, _DIRECT_IO, 0)
            case Operation.READ | Operation.WRITE:
                return self._transfer(operation, node, body)
            case Operation.RELEASE | Operation.FSYNC:
                return b""
        raise OSError(errno.ENOSYS, "not served")

    def _transfer(self, operation: int, node: int, body: bytes) -> bytes:
        _, offset, length = struct.unpack_from("<QQI", body)
        file = self._files[node - _FIRST].fileno()
        if operation == Operation.READ:
            return os.pread(file, length, offset)
        os.pwrite(file, body[40 : 40 + length], offset)
        return struct.pack("<II", length, 0)

    def _attr(self, node: int) -> bytes:
        is_root = node == _ROOT
        mode, size = (0o40755, 0) if is_root else (0o100600, self._size)
        times = (0,) * 6
        sizes = struct.pack("<QQQ", node, size, size // 512)
        rest = struct.pack("<QQQIII", *times)
        return sizes + rest + struct.pack("<IIIIIII", mode, 1, 0, 0, 0, 4096, 0)


def main() -> None:
    """Serve. Arguments: mount point, number of files, size of each in bytes."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    server = FuseServer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("serving", flush=True)
    server.run()


if __name__ == "__main__":
    main()
