"""Servers of a lab: made when missing, made again when broken, waited for."""

import dataclasses
import itertools

import pytest

from lib.lab import errors
from lib.lab.grounds import servers
from lib.lab.run import waiting
from lib.lab.whole import parts

KIND = servers.Kind()


class Cloud:
    """A cloud whose servers become what a test says at the next look."""

    def __init__(self, *present: servers.Server, becomes: str = "ACTIVE") -> None:
        self.servers = list(present)
        self.becomes = becomes
        self.number = 0

    def items(self) -> tuple[servers.Server, ...]:
        before = tuple(self.servers)
        self.servers = [
            (
                dataclasses.replace(server, status=self.becomes)
                if server.status == "BUILD"
                else server
            )
            for server in self.servers
        ]
        return before

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        del kind
        self.number += 1
        self.servers.append(servers.Server(f"new-{self.number}", name, "BUILD"))
        return self.servers[-1]

    def delete(self, server_id: str) -> None:
        self.servers = [server for server in self.servers if server.id != server_id]

    def stop(self, server_id: str) -> None:
        raise NotImplementedError(server_id)

    start = remove_floating_ips = stop

    def add_floating_ip(self, server_id: str) -> str:
        raise NotImplementedError(server_id)


def test_only_missing_and_broken_servers_are_made() -> None:
    """A second start leaves alone what works, also what its user has stopped."""
    cloud = Cloud(
        servers.Server("1", "a", "ACTIVE"),
        servers.Server("2", "b", "ERROR"),
        servers.Server("3", "c", "SHUTOFF"),
        servers.Server("9", "foreign", "ERROR"),
    )
    created = parts.boot(cloud, ["a", "b", "c", "d"], KIND)
    assert created == {"b": "new-1", "d": "new-2"}
    assert {server.id for server in cloud.servers} == {"1", "3", "9", "new-1", "new-2"}


def test_servers_are_waited_for_until_they_are_made() -> None:
    """The ids come when every server is ACTIVE, or stopped by its user."""
    cloud = Cloud(servers.Server("3", "c", "SHUTOFF"))
    parts.boot(cloud, ["a", "c"], KIND)
    assert parts.wait_for_servers(cloud, ["a", "c"]) == {"a": "new-1", "c": "3"}


def test_a_server_that_fails_ends_the_wait() -> None:
    """The sentence names the server that the cloud could not make."""
    cloud = Cloud(becomes="ERROR")
    parts.boot(cloud, ["a"], KIND)
    with pytest.raises(errors.LabError, match="did not make a;"):
        parts.wait_for_servers(cloud, ["a"])


def test_servers_that_do_not_come_end_the_wait() -> None:
    """The wait is bounded, and says which is missing."""
    cloud = Cloud(becomes="BUILD")
    parts.boot(cloud, ["a"], KIND)
    ticks = itertools.count(step=100)
    timing = waiting.Timing(lambda: next(ticks), lambda s: None, lambda text: None)
    with pytest.raises(errors.LabError, match="not within 900 s: the cloud makes a;"):
        parts.wait_for_servers(cloud, ["a"], timing)
