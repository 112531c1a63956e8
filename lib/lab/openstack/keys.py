"""Keys of the lab's OpenStack: tokens, stored credentials, octavia's authority."""

import datetime
import pathlib

from cryptography import fernet

from lib.lab.kube import pki


def make(folder: pathlib.Path, now: datetime.datetime) -> None:
    """Make the keys that are not there yet.

    Source: keystone, "Fernet - Frequently Asked Questions": a key repository holds
    the staged key as "0" and the primary one under the highest number.
    """
    for repository in ("fernet", "credential"):
        (folder / repository).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("0", "1"):
            file = folder / repository / name
            if not file.exists():
                pki.write_secret(file, fernet.Fernet.generate_key())
    if not (folder / "client.pem").exists():
        authority = pki.authority("mooring-lab", now)
        pki.write_secret(folder / "ca.key", authority.key)
        pki.write_secret(folder / "ca.pem", authority.certificate)
        pki.write_secret(folder / "client.pem", authority.certificate + authority.key)
