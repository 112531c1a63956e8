"""Places within a slot."""

import os
import pathlib

from lib.lab import places
from lib.lab.slots import leases, slots


def test_a_kubelet_finds_room_for_its_sockets_in_every_place(
    tmp_path: pathlib.Path,
) -> None:
    """In the folder of a user with a long name; two places of one name differ."""
    folder = pathlib.Path("/home/someone-with-a-name/.local/state/mooring/tests/8")
    where = places.Places(tmp_path, folder / "lab", 25000)
    lease = leases.Lease(slots.Slot(0, folder, os.open(tmp_path, os.O_RDONLY)), where)

    first, second = (lease.apart("test_node_becomes_ready_and_le0", 100) for _ in "ab")

    lease.slot.release()
    assert first.state != second.state
    assert first.port_base == 25100
    socket = first.state / "node" / "kubelet" / "pod-resources" / "2102887110"
    assert len(str(socket)) <= 107
