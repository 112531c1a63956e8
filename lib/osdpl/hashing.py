"""Hash of a release: equal hashes mean that helm has nothing to do."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lib.osdpl import model

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
            "inputs": dict(inputs or {}),
        }
    )[:LENGTH]


def digest(document: Any) -> str:
    """Return the SHA-256 of a JSON document, independent of the order of keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
