import os
import socket
import sys

import pytest

from lib.lab import errors, places
from lib.lab.run import ports, processes


def test_taken_port_names_its_holder(where: places.Places) -> None:
    """Whoever meets a taken port learns which, for what, and who holds it."""
    with socket.socket() as holder:
        holder.bind((ports.LOOPBACK, where.port("etcd")))
        holder.listen()
        with pytest.raises(errors.LabError) as caught:
            ports.require(where, [("etcd", "etcd"), ("kube-apiserver", "apiserver")])
    text = str(caught.value)
    assert f"port {where.port('etcd')}, meant for etcd, is held by" in text
    assert f"(pid {os.getpid()})" in text
    assert "apiserver" not in text
    assert "MOORING_LAB_PORT_BASE" in text


def test_free_ports_are_fine(where: places.Places) -> None:
    """Nothing is said when there is nothing to say."""
    ports.require(where, [("etcd", "etcd"), ("etcd", "etcd-peer")])


def test_own_running_program_may_hold_its_port(where: places.Places) -> None:
    """A lab that is up already is no hindrance to itself."""
    port = where.port("etcd")
    listen = (
        "import socket, time; s = socket.socket();"
        f" s.bind(('127.0.0.1', {port})); s.listen(); time.sleep(600)"
    )
    processes.start(where, "etcd", [sys.executable, "-c", listen])
    try:
        processes.wait_for(where, "etcd", lambda: not ports.free(port))
        ports.require(where, [("etcd", "etcd")])
    finally:
        processes.stop(where, ["etcd"])
    assert ports.free(port)
