"""A network namespace for a node: its addresses, bridge and rules are its own.

The API server and the cloud listen on the loopback address of the machine. In the
namespace the same ports are relayed to them, on all its addresses.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

from lib.kube import resources
from lib.lab import errors, places
from lib.lab.kube import kube_objects, pod_loopback

_CLONE_NEWNET = 0x40000000
"""Source: Linux include/uapi/linux/sched.h."""
ANY = "0.0.0.0"  # noqa: S104 - of a namespace without a way out
API_SERVICE = "kubernetes"


@contextlib.contextmanager
def entered(where: places.Places, numbers: Sequence[int]) -> Iterator[None]:
    """Move the main thread, and what it starts, to a new network namespace.

    Relays ports of this machine into it, and into those of its pods, for as long as
    the block lasts. The main thread then returns to its network.

    Raises:
        LabError: the kernel refuses; CAP_SYS_ADMIN is required.
    """
    before = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, before)
        # Its thread stays in the network of the machine.
        relay = stack.enter_context(pod_loopback.relayed(where, numbers))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise errors.LabError(f"no network namespace: {reason}")
        stack.callback(libc.setns, before, _CLONE_NEWNET)
        _up()
        relay.add(pathlib.Path(f"/proc/{os.getpid()}/ns/net"), ANY)
        yield


def _up() -> None:
    words = ("ip", "link", "set", "lo", "up")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise errors.LabError(f"no loopback address: {done.stderr.strip()}")


def publish_api_server(objects: kube_objects.Objects, address: str, port: int) -> None:
    """Create or correct the endpoint of the Service `kubernetes`.

    The lab's API server does not, as it listens on a loopback address. objects: of the
    namespace default. address: of the node.
    """
    kind, parts = resources.ENDPOINT_SLICES, {
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    if objects.get(kind, API_SERVICE) is not None:
        objects.patch(kind, API_SERVICE, **parts)
        return
    labels = {"labels": {"kubernetes.io/service-name": API_SERVICE}}
    objects.make(kind, API_SERVICE, labels, addressType="IPv4", **parts)
