"""What the lab asks of a cloud: a few servers, and hands to stop and delete them."""

import dataclasses
from typing import Protocol, runtime_checkable

ACTIVE = "ACTIVE"
SHUTOFF = "SHUTOFF"
ERROR = "ERROR"


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """One server, as far as the lab shows it.

    zone, flavor: empty if the cloud does not report it.
    fault: the cloud's reason why the server went to ERROR.
    """

    id: str
    name: str
    status: str
    zone: str = ""
    flavor: str = ""
    addresses: tuple[str, ...] = ()
    fault: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """What servers are made of; empty strings mean "the smallest that fits"."""

    flavor: str = ""
    image: str = ""
    network: str = ""


class Cloud(Protocol):
    """The cloud of a lab, with a user's rights.

    Every method raises LabError with one sentence when the cloud does not comply.
    """

    def items(self) -> tuple[Server, ...]:
        """List the servers of the project."""
        ...

    def boot(self, name: str, kind: Kind) -> Server:
        """Start making a server; it is not ACTIVE yet."""
        ...

    def stop(self, server_id: str) -> None:
        """Shut a server down, as its user would."""
        ...

    def start(self, server_id: str) -> None:
        """Start a stopped server."""
        ...

    def delete(self, server_id: str) -> None:
        """Delete a server; fine when it does not exist."""
        ...


@runtime_checkable
class Exposing(Protocol):
    """A cloud whose servers can have floating IPs."""

    def add_floating_ip(self, server_id: str) -> str:
        """Assign a new floating IP to the server; return its address."""
        ...

    def remove_floating_ips(self, server_id: str) -> None:
        """Delete every floating IP of the server."""
        ...


@runtime_checkable
class Migrating(Protocol):
    """A cloud whose user can have a server migrate while it runs."""

    def migrate(self, server_id: str) -> None:
        """Move a running server to another host."""
        ...

    def host(self, server_id: str) -> str:
        """Return the host on which a server runs now."""
        ...
