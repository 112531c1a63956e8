import pathlib
import re

from lib.lab import places
from lib.lab.kube import control_plane, kube_arguments

WHERE = places.Places(pathlib.Path("/cache"), pathlib.Path("/lab"), 30000)
PROGRAM = pathlib.Path("/bin/program")
COMMANDS = (
    kube_arguments.etcd(WHERE, PROGRAM),
    kube_arguments.apiserver(WHERE, PROGRAM),
    kube_arguments.controller_manager(WHERE, PROGRAM),
    kube_arguments.scheduler(WHERE, PROGRAM),
)


def test_nothing_listens_beyond_loopback() -> None:
    """A lab cannot be reached from another machine."""
    for command in COMMANDS:
        flags = [
            argument for argument in command if re.search("bind|url|addr", argument)
        ]
        assert flags
        for flag in flags:
            if "=" in flag and "types" not in flag:
                assert "127.0.0.1" in flag


def test_ports_and_files_are_the_labs_own() -> None:
    """Two labs side by side share neither ports nor files."""
    text = " ".join(argument for command in COMMANDS for argument in command[1:])
    ports = {int(port) for port in re.findall(r"\b(30\d{3})\b", text)}
    names = (*control_plane.PROGRAMS[2:], control_plane.SCHEDULER)
    assert ports == {
        WHERE.port(name) for name in ("apiserver", "etcd", "etcd-peer", *names)
    }
    files = re.findall(r"=(/[^ ]*)", text)
    assert files
    assert all(file.startswith("/lab/") for file in files)


def test_further_arguments_prevail() -> None:
    """A test may override any flag of the API server."""
    command = kube_arguments.apiserver(WHERE, PROGRAM, ("--allow-privileged=false",))
    assert command[-1] == "--allow-privileged=false"


def test_lost_node_is_found_out_within_ten_seconds() -> None:
    """Grace period and the pace of looking add up to less than ten seconds."""
    flags = dict(
        argument.split("=", 1)
        for argument in COMMANDS[2]
        if argument.startswith("--node-monitor")
    )
    assert sum(int(value.removesuffix("s")) for value in flags.values()) < 10
