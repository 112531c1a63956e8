"""Where charts come from: the kinds of sources, and which one an address means."""

import functools
import pathlib
import urllib.parse
from collections.abc import Callable
from typing import Protocol

from lib.helm import directory, errors, http_repository, oci_registry, policy, web
from lib.helm.policy import Policy
from lib.helm.source_access import ANONYMOUS, SourceAccess


class Source(Protocol):
    """A place with charts. Each method raises a SourceError and nothing else."""

    def newest(self, name: str) -> str:
        """Return the newest version of a chart that is no pre-release."""
        ...

    def fetch(self, name: str, version: str) -> bytes:
        """Return the archive of a chart in exactly this version."""
        ...


Opener = Callable[[str], Source]


def opener(allowed: Policy, access: SourceAccess = ANONYMOUS) -> Opener:
    """Return what opens the sources that a policy allows."""
    return functools.partial(open_source, allowed=allowed, access=access)


def open_source(
    url: str, allowed: Policy = policy.TRUSTED, access: SourceAccess = ANONYMOUS
) -> Source:
    """Return the source at an address; nothing is read yet.

    url: http(s)://host/path of a chart repository, oci://host/path of a registry, or a
    folder as file:///path or /path.

    Raises:
        SourceInvalid: it is no such address, or one that is not allowed.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise errors.SourceInvalid(
            f"chart source {parts.scheme}://...@{parts.hostname}: invalid value: must"
            " be an address without user and password"
        )
    allowed.require(url)
    reader = web.Reader(allows_local=allowed.allows_local(url), access=access)
    match parts.scheme:
        case "http" | "https" if parts.hostname:
            return http_repository.Repository(url, reader)
        case "oci" if parts.hostname:
            path = parts.path.strip("/")
            return oci_registry.Registry(parts.netloc, path, reader)
        case "file" | "" if parts.path.startswith("/") and not parts.netloc:
            path = urllib.parse.unquote(parts.path) if parts.scheme else url
            return directory.Directory(pathlib.Path(path))
    raise errors.SourceInvalid(
        f'chart source: invalid value "{url}": must be http://, https:// or oci://'
        " with a host, or an absolute path"
    )
