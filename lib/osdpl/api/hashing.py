"""Hash of a release: equal hashes mean that helm has nothing to do."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lib.osdpl.api import model

LENGTH = 40
"""Characters of a hash; the value of a label holds 63."""


def release_hash(
    release: model.Release,
    chart_digest: str,
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Return the hash of what a release is made from.

    inputs: hashes of the objects that its chart reads from the cluster.
    """
    return digest(
        {
            "chart": release.chart.name,
            "version": release.chart.version,
            "digest": chart_digest,
            "namespace": release.namespace,
            "values": release.values,
            "images": release.images_base,
            "inputs": dict(inputs or {}),
        }
    )[:LENGTH]


def digest(document: Any) -> str:
    """Return the SHA-256 of a JSON document, independent of the order of keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_PREFIX = "sha256:"
_BYTES = 32


def label(chart_digest: str) -> str:
    """Return the digest of a chart as the value of a label, of at most 63 characters.

    Source: Kubernetes, labels: letters, digits, "-", "_" and "."; RFC 4648, base32.
    """
    raw = bytes.fromhex(chart_digest.removeprefix(_PREFIX))
    return base64.b32encode(raw).decode().rstrip("=").lower()


def of_label(text: str) -> str | None:
    """Return the digest that a label holds; None: it holds none."""
    padding = "=" * (-len(text) % 8)
    try:
        raw = base64.b32decode(text.upper() + padding)
    except binascii.Error:
        return None
    return f"{_PREFIX}{raw.hex()}" if len(raw) == _BYTES else None


def contents(values: Mapping[str, Any], *, has_images: bool = True) -> str:
    """Return the digest of values as helm records them.

    has_images: False without the images, to which the other ones of the chart may have
    been added. helm decodes numbers as floats and may drop nulls: 1 and 1.0 are equal,
    and nulls are omitted.
    """
    plain = _plain(values)
    if not has_images:
        plain.pop("images", None)
    return digest(plain)


def _plain(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {
            str(key): _plain(value) for key, value in node.items() if value is not None
        }
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    if isinstance(node, bool) or not isinstance(node, int | float):
        return node
    # helm reads numbers as floats of 64 bits: large ones lose digits.
    return int(float(node)) if float(node).is_integer() else node
