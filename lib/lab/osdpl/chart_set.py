"""The lab's chart set: written as a folder, packed as archives, listed in an index.

Rules: equal input gives equal bytes, so an archive keeps its digest.
"""

import dataclasses
import gzip
import hashlib
import importlib.resources
import io
import json
import pathlib
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from lib.lab.osdpl import chart_objects, chart_table, chart_table_nodes, contract
from lib.lab.osdpl.contract import Chart

CHARTS: tuple[Chart, ...] = (*chart_table.CHARTS, *chart_table_nodes.CHARTS)
VERSION = "2026.1.0"
TOOLKIT = "helm-toolkit"
_CREATED = "2026-04-14T00:00:00Z"
"""Constant, as all of an archive."""

Files = Mapping[str, str]
"""Content by path, relative to a chart's folder."""


@dataclasses.dataclass(frozen=True, slots=True)
class Archive:
    """One packed chart."""

    name: str
    version: str
    content: bytes

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}-{self.version}.tgz"

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()


def toolkit() -> Files:
    """Return the files of the library chart."""
    text = (importlib.resources.files("lib.lab.osdpl") / "helm_toolkit.tpl").read_text()
    chart = {"apiVersion": "v2", "name": TOOLKIT, "version": VERSION, "type": "library"}
    return {"Chart.yaml": yaml.safe_dump(chart), "templates/_lab.tpl": text}


def files(chart: Chart, version: str = VERSION) -> Files:
    """Return the files of a chart as they lie in a checkout."""
    toolkit_ = {
        "name": TOOLKIT,
        "repository": f"file://../{TOOLKIT}",
        "version": ">= 0.1.0",
    }
    head = {
        "apiVersion": "v2",
        "name": chart.name,
        "description": f"Simulated {chart.name} of the lab",
        "version": version,
        "appVersion": chart.app_version,
        "dependencies": [toolkit_],
    }
    return {
        "Chart.yaml": yaml.safe_dump(head, sort_keys=False),
        "values.yaml": yaml.safe_dump(values(chart), sort_keys=False),
        "templates/objects.yaml": chart_objects.templates(chart),
    }


def values(chart: Chart) -> dict[str, Any]:
    """Return the defaults of a chart."""
    tree: dict[str, Any] = {
        "release_group": None,
        "images": {
            "tags": {
                key: contract.OTHER_IMAGES[key]
                for key in chart.images
                if key in contract.OTHER_IMAGES
            }
        },
        "labels": {},
        "pod": {"replicas": {}},
        "endpoints": {"cluster_domain_suffix": "cluster.local"},
        "dependencies": {"static": _dependencies(chart)},
        "manifests": {"job_image_repo_sync": True, **chart.flags},
    }
    if "endpoints.cluster_domain_suffix" in chart.required:
        del tree["endpoints"]["cluster_domain_suffix"]
    for path, key in chart.labels.items():
        _put(tree, f"labels.{path}.node_selector_key", key)
        _put(tree, f"labels.{path}.node_selector_value", "enabled")
    for endpoint in chart.endpoints:
        host = contract.SERVICES[endpoint]
        _put(tree, f"endpoints.{endpoint}.hosts.default", host)
    for path, default in chart.public.items():
        _put(tree, path, default)
    for guarded in chart.parts:
        if guarded.flag:
            tree["manifests"][guarded.flag] = guarded.is_on
    return tree


def _put(tree: dict[str, Any], path: str, value: object) -> None:
    *above, last = path.split(".")
    for key in above:
        tree = tree.setdefault(key, {})
    tree[last] = value


def _dependencies(chart: Chart) -> dict[str, Any]:
    """Return what each workload and Job waits for, as values hold it."""
    result = {}
    for waiting in chart.parts:
        needs = waiting.needs
        result[chart_objects.static_key(waiting.name)] = {
            "services": [
                {"endpoint": "internal", "service": name} for name in needs.services
            ],
            "jobs": list(needs.jobs),
            "pod": [
                {
                    "requireSameNode": needs.same_node,
                    "labels": {"application": application, "component": component},
                }
                for application, component in needs.pods
            ],
        }
    return result


def write(folder: pathlib.Path) -> None:
    """Write the set as a checkout has it: one folder per chart, beside helm-toolkit."""
    parts = {TOOLKIT: toolkit(), **{chart.name: files(chart) for chart in CHARTS}}
    for name, content in parts.items():
        for path, text in content.items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


def pack(chart: Chart, version: str = VERSION) -> Archive:
    """Return one chart as helm packs it, with its library inside."""
    content = {
        f"{chart.name}/{path}": text for path, text in files(chart, version).items()
    }
    inside = f"{chart.name}/charts/{TOOLKIT}"
    content |= {f"{inside}/{path}": text for path, text in toolkit().items()}
    return Archive(chart.name, version, _tar(content))


def _tar(content: Files) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, text in sorted(content.items()):
            data = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def pack_all(charts: Iterable[Chart] = CHARTS) -> tuple[Archive, ...]:
    """Return all charts, packed."""
    return tuple(pack(chart) for chart in charts)


def index(archives: Sequence[Archive]) -> str:
    """Return the index.yaml of an HTTP repository; JSON, which is YAML.

    Source: Helm, chart repository guide.
    """
    entries: dict[str, list[dict[str, object]]] = {}
    for archive in archives:
        row: dict[str, object] = {
            "apiVersion": "v2",
            "name": archive.name,
            "version": archive.version,
            "created": _CREATED,
            "digest": archive.digest,
            "urls": [archive.file],
        }
        entries.setdefault(archive.name, []).append(row)
    whole = {"apiVersion": "v1", "generated": _CREATED, "entries": entries}
    return json.dumps(whole, indent=1)


def write_repository(folder: pathlib.Path, archives: Sequence[Archive]) -> None:
    """Write archives and index as an HTTP server offers them."""
    folder.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        (folder / archive.file).write_bytes(archive.content)
    (folder / "index.yaml").write_text(index(archives))
