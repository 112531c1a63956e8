"""Access to private sources of charts: accounts by address, and a CA certificate.

The folder is a mounted Secret of type kubernetes.io/dockerconfigjson, with ca.crt if
sources have certificates of an authority of their own. It is read again for each
request, so that a rotation needs no restart. Of several accounts of a host the one with
the longest path counts.

Source of the format: Docker, config.json; containers-auth.json(5) for paths.
"""

import base64
import binascii
import dataclasses
import pathlib
import re
import urllib.parse
from collections.abc import Mapping

import msgspec

from lib.helm import errors
from lib.process import decoding

ACCOUNTS, AUTHORITY = ".dockerconfigjson", "ca.crt"
_DOCKER_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")
"""Names of one registry; kubectl writes the second one, as a URL."""
_API = re.compile(r"^/v[12](?=/|$)")
"""Before the path of a repository."""


class _Account(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""


class _Accounts(msgspec.Struct, frozen=True):
    auths: Mapping[str, _Account] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class SourceAccess:
    """folder: with the files above; None: sources are read anonymously."""

    folder: pathlib.Path | None = None

    def account(self, url: str) -> tuple[str, str] | None:
        """Return user and password for an address, sent by HTTPS only.

        Raises:
            SourceInvalid: the accounts cannot be read.
        """
        if self.folder is None or urllib.parse.urlsplit(url).scheme != "https":
            return None
        host, path = _place(url)
        best: tuple[str, _Account] | None = None
        for key, account in self._accounts().items():
            own_host, own_path = _place(key if "://" in key else f"https://{key}")
            is_above = f"{path}/".startswith(f"{own_path}/")
            if own_host == host and is_above:
                best = max(best or (own_path, account), (own_path, account), key=_depth)
        return _pair(best[1]) if best else None

    def _accounts(self) -> Mapping[str, _Account]:
        """Return the accounts by address; none without the file."""
        if self.folder is None or not (self.folder / ACCOUNTS).exists():
            return {}
        try:
            text = (self.folder / ACCOUNTS).read_bytes()
            return decoding.decode(text, _Accounts).auths
        except (OSError, msgspec.MsgspecError) as error:
            # The error's own text may quote a password.
            raise errors.SourceInvalid(
                f"accounts of chart sources: {ACCOUNTS} cannot be read"
                f" ({type(error).__name__}): must be as of a Secret of type"
                " kubernetes.io/dockerconfigjson"
            ) from None

    def authority(self) -> pathlib.Path | None:
        """Return the file with the CA certificate, None if there is none."""
        file = self.folder / AUTHORITY if self.folder is not None else None
        return file if file is not None and file.is_file() else None


ANONYMOUS = SourceAccess()


def _place(url: str) -> tuple[str, str]:
    """Return host with port, and the path of a repository, of an address."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.lower().removesuffix(":443")
    path = _API.sub("", parts.path).rstrip("/")
    return _DOCKER_HUB[0] if host in _DOCKER_HUB else host, path


def _depth(row: tuple[str, _Account]) -> int:
    return len(row[0])


def _pair(account: _Account) -> tuple[str, str] | None:
    """Return user and password; auth is both, with a colon, in base64."""
    if account.username:
        return account.username, account.password
    try:
        user, _, password = base64.b64decode(account.auth).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, password) if user else None
