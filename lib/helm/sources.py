"""Where charts come from: the kinds of sources, and which one an address means."""

import contextlib
import ipaddress
import pathlib
import urllib.parse
from collections.abc import Callable
from typing import Protocol

from lib.helm import directory, errors, http_repository, oci_registry


class Source(Protocol):
    """A place with charts. Each method raises a SourceError and nothing else."""

    def newest(self, name: str) -> str:
        """Return the newest version of a chart that is no pre-release."""
        ...

    def fetch(self, name: str, version: str) -> bytes:
        """Return the archive of a chart in exactly this version."""
        ...


Opener = Callable[[str], Source]


def open_source(url: str) -> Source:
    """Return the source at an address; nothing is read yet.

    url: http(s)://host/path of a chart repository, oci://host/path of a registry, or a
    folder as file:///path or /path.

    Raises:
        SourceInvalid: it is no such address.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise errors.SourceInvalid(
            f"chart source {parts.scheme}://...@{parts.hostname}: invalid value: must"
            " be an address without user and password"
        )
    if _is_link_local(parts.hostname or ""):
        raise errors.SourceInvalid(
            f'chart source: invalid value "{url}": must not be a link-local address'
        )
    match parts.scheme:
        case "http" | "https" if parts.hostname:
            return http_repository.Repository(url)
        case "oci" if parts.hostname:
            return oci_registry.Registry(parts.netloc, parts.path.strip("/"))
        case "file" | "" if parts.path.startswith("/") and not parts.netloc:
            path = urllib.parse.unquote(parts.path) if parts.scheme else url
            return directory.Directory(pathlib.Path(path))
    raise errors.SourceInvalid(
        f'chart source: invalid value "{url}": must be http://, https:// or oci://'
        " with a host, or an absolute path"
    )


def _is_link_local(host: str) -> bool:
    """Report whether a host is a link-local address, such as a metadata service's."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.partition("%")[0]).is_link_local
    return False
