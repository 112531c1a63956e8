"""Access to private sources of charts: accounts by host, and a CA certificate.

The folder is a mounted Secret of type kubernetes.io/dockerconfigjson, with ca.crt if
sources have certificates of an authority of their own. It is read again for each
request, so that a rotation needs no restart.
"""

import base64
import binascii
import dataclasses
import pathlib
import urllib.parse
from collections.abc import Mapping

import msgspec

from lib.process import decoding

ACCOUNTS, AUTHORITY = ".dockerconfigjson", "ca.crt"


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
        """Return user and password for the host of an address, sent by HTTPS only."""
        parts = urllib.parse.urlsplit(url)
        if self.folder is None or parts.scheme != "https":
            return None
        try:
            text = (self.folder / ACCOUNTS).read_bytes()
            accounts = decoding.decode(text, _Accounts).auths
        except (OSError, msgspec.MsgspecError):
            return None
        for host, account in accounts.items():
            name = urllib.parse.urlsplit(host if "://" in host else f"//{host}").netloc
            if name.lower() == parts.netloc.lower():
                return _pair(account)
        return None

    def authority(self) -> str | bool:
        """Return the file with the CA certificate; True: those of the image."""
        if self.folder is None or not (self.folder / AUTHORITY).is_file():
            return True
        return str(self.folder / AUTHORITY)


ANONYMOUS = SourceAccess()


def _pair(account: _Account) -> tuple[str, str] | None:
    """Return user and password. Source: Docker, config.json: auth is user:password."""
    if account.username:
        return account.username, account.password
    try:
        user, _, password = base64.b64decode(account.auth).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, password) if user else None
