"""What kube-apiserver creates at its first start, kept for the next new lab.

A new API server creates 160 cluster-scoped objects, such as the ClusterRoles of
Kubernetes: a sixth of the work of its start. They are the same each time, so those of
the first lab are copied from etcd into the cache, and from there into an empty etcd.

Rules: nothing that identifies a cluster is kept, such as namespaces, ConfigMaps and
Leases; kube-apiserver compares what it finds with its own defaults at each start, and
creates what is missing. Without a copy a lab only starts more slowly.

Source: etcd, "gRPC gateway": keys and values are in base64.
"""

import base64
import contextlib
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.kube import admin_api, kube_files

_PREFIXES = (
    "/registry/apiregistration.k8s.io/apiservices/",
    "/registry/clusterrolebindings/",
    "/registry/clusterroles/",
    "/registry/flowschemas/",
    "/registry/priorityclasses/",
    "/registry/prioritylevelconfigurations/",
)
_TRANSACTION = 100
"""Objects in one transaction; etcd allows 128."""


def is_new(where: places.Places) -> bool:
    """Report whether etcd has never run in these places."""
    return not any(kube_files.etcd_data(where).iterdir())


def put(where: places.Places) -> bool:
    """Copy the objects into an etcd that is empty; return False if none are kept."""
    try:
        kept = json.loads(file_of(where).read_bytes())
    except (OSError, ValueError):
        return False
    for first in range(0, len(kept), _TRANSACTION):
        puts = [{"requestPut": row} for row in kept[first : first + _TRANSACTION]]
        if _ask(where, "txn", {"success": puts}) is None:
            return False
    return bool(kept)


def keep(where: places.Places) -> None:
    """Keep the objects of a new etcd that kube-apiserver has filled."""
    kept: list[Mapping[str, str]] = []
    for prefix in _PREFIXES:
        answer = _ask(where, "range", _range(prefix))
        if answer is None:
            return
        rows = answer.get("kvs", ())
        kept += ({"key": row["key"], "value": row["value"]} for row in rows)
    file = file_of(where)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        part.write_text(json.dumps(kept))
        part.replace(file)


def file_of(where: places.Places) -> pathlib.Path:
    """Return their file, beside the program: another version has another folder."""
    return programs.path(where, "kube-apiserver").with_name("first-objects.json")


def _range(prefix: str) -> Mapping[str, str]:
    """Return the range of all keys with a prefix, as etcd wants it."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return {"key": _encoded(prefix), "range_end": _encoded(end)}


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _ask(
    where: places.Places, method: str, body: Mapping[str, object]
) -> dict[str, Any] | None:
    """Return the answer of etcd's key-value service, or None when it refused."""
    answer = admin_api.post(where.port("etcd"), f"/v3/kv/{method}", body)
    return None if answer is None else dict(json.loads(answer))
