"""The formats that our schemas name: networks, keys, certificates. Pure."""

import base64
import binascii
import ipaddress
import ssl
import urllib.parse
from collections.abc import Callable, Mapping

import jsonschema

_KEY_TYPES = frozenset(
    {
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ecdsa-sha2-nistp256@openssh.com",
        "sk-ssh-ed25519@openssh.com",
        "ssh-dss",
        "ssh-ed25519",
        "ssh-rsa",
    }
)
"""Source: RFC 4253 6.6, RFC 5656 6.1, RFC 8709 4, OpenSSH PROTOCOL.u2f."""


def checker() -> jsonschema.FormatChecker:
    """Return the checker of the formats; other formats are always valid."""
    checker = jsonschema.FormatChecker(formats=())
    for name, holds in _FORMATS.items():
        checker.checks(name)(_of_text(holds))
    return checker


def _of_text(holds: Callable[[str], bool]) -> Callable[[object], bool]:
    """Accept values that are no text: the keyword `type` validates them."""
    return lambda value: holds(value) if isinstance(value, str) else True


def is_network(text: str) -> bool:
    """Report whether it is an IPv4 or IPv6 network; host bits may be set."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_ipv4_network(text: str) -> bool:
    """Report whether it is an IPv4 network with prefix length, without host bits."""
    _, slash, length = text.partition("/")
    try:
        ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return bool(slash) and length.isdigit()


def is_ipv4_address(text: str) -> bool:
    """Report whether it is an IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def is_ssh_public_key(text: str) -> bool:
    """Report whether it is a line as in authorized_keys, without options.

    Source: RFC 4253 6.6: the key's blob begins with its type.
    """
    parts = text.split(maxsplit=2)
    if len(parts) < 2 or parts[0] not in _KEY_TYPES or "\n" in text.strip():
        return False
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except binascii.Error:
        return False
    length = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + length] == parts[0].encode() and len(blob) > 4 + length


def is_http_url(text: str) -> bool:
    """Report whether it is an http or https URL with a host."""
    try:
        parts = urllib.parse.urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def is_pem(text: str) -> bool:
    """Report whether it holds CA certificates in PEM."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return True


_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "http-url": is_http_url,
    "ipv4-address": is_ipv4_address,
    "ipv4-network": is_ipv4_network,
    "network": is_network,
    "pem-certificates": is_pem,
    "ssh-public-key": is_ssh_public_key,
}
