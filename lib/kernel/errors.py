"""Errors of the kernel and of the commands that ask it for a change."""


class KernelError(Exception):
    """Base of all; the message names the operation and its object.

    output: the end of what a command printed; empty where no command ran.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.output = output

    def __str__(self) -> str:
        output = " ".join(self.output.split())
        return f"{self.message}: {output}" if output else self.message


class Failed(KernelError):
    """The kernel or a command refused."""


class Busy(KernelError):
    """The disk or mount is in use: by a mount, mkfs, device mapper or md."""


class NotFound(KernelError):
    """The device or path is absent."""


class Missing(KernelError):
    """A program is not installed."""


class TimedOut(KernelError):
    """A command was killed because it took too long."""


class Stuck(KernelError):
    """A command was killed and has not exited: the kernel waits for the disk."""


class BadDisk(KernelError):
    """Reading or writing gave an I/O error."""
