"""Which sources of charts may be read: those that an administrator lists.

The user who edits a spec names the source, and the controller reads it from
its own place in the network: addresses of the controller's own host and of metadata
services are refused, also behind names and redirects, unless they are listed.
"""

import dataclasses
import ipaddress
import urllib.parse
from collections.abc import Sequence

from lib.helm import errors

ANY = "*"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_MAPPED = int(ipaddress.IPv6Address("::ffff:0:0"))
_HTTP = ("http", "https", "oci")


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """Sources that may be read.

    allowed: addresses; a source is one of them, or below one; "*": any. is_trusted:
    the addresses come from the user of a tool, not from an object of the cluster.
    """

    allowed: Sequence[str] = (ANY,)
    is_trusted: bool = False

    def allows_local(self, url: str) -> bool:
        """Report whether a source may be on this host, or at a link-local address."""
        return self.is_trusted or any(
            _is_below(url, address) for address in self.allowed if address != ANY
        )

    def require(self, url: str) -> None:
        """Check a source by its address.

        Raises:
            SourceInvalid: it is not allowed.
        """
        if self.allows_local(url):
            return
        if ANY not in self.allowed:
            listed = ", ".join(self.allowed) or "none"
            raise errors.SourceInvalid(
                f'chart source: invalid value "{url}": must be one of the allowed'
                f" sources: {listed}"
            )
        require_remote(url)


TRUSTED = Policy(is_trusted=True)
"""Policy of a tool: its user names the sources."""


def require_remote(url: str) -> None:
    """Check that the host of an address is not written as a local address.

    Raises:
        SourceInvalid: it is one.
    """
    host = (urllib.parse.urlsplit(url).hostname or "").removesuffix(".")
    if host == "localhost" or host.endswith(".localhost") or is_local(host):
        raise errors.SourceInvalid(
            f'chart source: invalid value "{url}": must not be a loopback or link-local'
            " address, unless it is an allowed source"
        )


def is_local(host: str) -> bool:
    """Report whether an IP address is of this host, or link-local; no address: no.

    Link-local addresses are those of metadata services of clouds.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        # The fd00:ec2::/32 of EC2 is private, not link-local: its one address is named.
        if address in _NAT64:
            address = ipaddress.IPv6Address(int(address) & 0xFFFFFFFF | _MAPPED)
        address = address.ipv4_mapped or address
        if str(address) == "fd00:ec2::254":
            return True
    return address.is_loopback or address.is_link_local or address.is_unspecified


def _is_below(url: str, address: str) -> bool:
    """Report whether an address is another one, or below its path."""
    whole, base = _parts(url), _parts(address)
    if whole is None or base is None or whole[:2] != base[:2]:
        return False
    path, above = whole[2], base[2]
    return path == above or path.startswith(f"{above.rstrip('/')}/")


def _parts(url: str) -> tuple[str, str, str] | None:
    """Return scheme, host and path; None: the path leads upwards, or has a query."""
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path)
    if parts.query or ".." in path.split("/"):
        return None
    scheme = parts.scheme.lower() or "file"
    host = parts.netloc.lower() if scheme in _HTTP else ""
    return scheme, host, path.rstrip("/")
