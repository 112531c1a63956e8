"""Generates credentials: random ones, or placeholders derived from names."""

import secrets
from typing import Protocol

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ALPHABET = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNpPqQrRsStTuUvVwWxXyYzZ1234567890"
"""Letters and digits of the reference: no letter O."""
_KEY_BITS = 2048


class Generator(Protocol):
    """Source of credentials; name: Secret and field, such as "a-passwords.b.c"."""

    def password(self, name: str, length: int) -> str:
        """Return a password."""

    def user(self, name: str, prefix: str, length: int) -> str:
        """Return a user name with a prefix."""

    def ssh_key(self, name: str) -> tuple[str, str]:
        """Return the public and the private part of a new SSH key."""


class Random:
    """Cryptographically secure credentials."""

    def password(self, name: str, length: int) -> str:
        """Return a random password."""
        del name
        return "".join(secrets.choice(ALPHABET) for _ in range(length))

    def user(self, name: str, prefix: str, length: int) -> str:
        """Return the prefix with random characters, cut to the length."""
        return (prefix + self.password(name, length))[:length]

    def ssh_key(self, name: str) -> tuple[str, str]:
        """Return the parts of a new RSA key, in the formats of OpenSSH and OpenSSL."""
        del name
        key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        return public.decode(), private.decode()


class Placeholders:
    """Placeholders for renders without a cluster: two runs are equal."""

    def password(self, name: str, length: int) -> str:
        """Return the name as a placeholder."""
        del length
        return f"placeholder-{name.replace('.', '-')}"

    def user(self, name: str, prefix: str, length: int) -> str:
        """Return a name that only this Secret has, as those of a cluster are."""
        del length
        return f"{prefix}-of-{name.partition('.')[0]}"

    def ssh_key(self, name: str) -> tuple[str, str]:
        """Return placeholders of both parts."""
        return f"placeholder-{name}-public", f"placeholder-{name}-private"
