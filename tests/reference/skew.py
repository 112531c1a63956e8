"""What charts and images of the former release agreed on, for the present ones.

The record is written from a tag by `./pants run tests/reference/skew.py -- TAG`, after
each release of the charts. Before the first one it is that of an earlier commit.
"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from lib.lab.charts import charts

RECORD = pathlib.Path("tests/reference/former.json")
CHART = charts.UMBRELLA
IMAGES = charts.COMPONENTS
"""Components whose images and charts are of releases of their own."""
_FLAG = re.compile(r"^\| `(--[a-z0-9-]+)`", re.MULTILINE)
_VARIABLE = re.compile(r"^\| `([A-Z][A-Z0-9_]*)`", re.MULTILINE)
_GIT_S = 60
Json = dict[str, Any]


def read() -> Json:
    """Return the record."""
    return dict(json.loads(RECORD.read_text()))


def rendered(documents: Iterable[Json]) -> Json:
    """Return what the images depend on of rendered manifests.

    containers: that of each component. rights: group, resource, name and verb of all
    roles.
    """
    own, rights = {}, set()
    for document in filter(None, documents):
        if document["kind"] in ("Deployment", "DaemonSet"):
            for row in document["spec"]["template"]["spec"]["containers"]:
                for component in IMAGES:
                    if re.search(rf"/{component}[:@]", row["image"]):
                        own[component] = _container(row)
        if document["kind"] in ("Role", "ClusterRole"):
            rights |= {right for rule in document["rules"] for right in _rights(rule)}
    return {"containers": own, "rights": sorted(rights)}


def _rights(rule: Json) -> Iterator[str]:
    names = rule.get("resourceNames", ["*"])
    parts = (rule.get("apiGroups", [""]), rule.get("resources", []), names)
    for row in itertools.product(*parts, rule["verbs"]):
        yield " ".join(row).strip()


def _container(row: Json) -> Json:
    """Return what a container gets.

    args: its command line. variables: names of those of its environment. probes: port,
    path and scheme of each one. folders: its mounts.
    """
    probes = {
        kind: [row[kind]["httpGet"].get(key, "") for key in ("port", "path", "scheme")]
        for kind in ("livenessProbe", "readinessProbe", "startupProbe")
        if kind in row
    }
    return {
        "args": row["args"],
        "variables": sorted(item["name"] for item in row.get("env", ())),
        "probes": probes,
        "folders": sorted(item["mountPath"] for item in row["volumeMounts"]),
    }


def present() -> Mapping[str, Json]:
    """Return what the present chart renders, by snapshot."""
    return {
        name: rendered(snapshot.objects(pathlib.Path()))
        for name, snapshot in charts.of(CHART).items()
    }


def main() -> None:
    """Write the record from a tag or commit."""
    (tag,) = sys.argv[1:]
    pages = {x: _shown(tag, f"docs/reference/{x}-flags.md") for x in IMAGES}
    folder = f"charts/{CHART}/snapshots"
    texts = {name: _shown(tag, f"{folder}/{name}.yaml") for name in charts.of(CHART)}
    record = {
        "tag": tag,
        "flags": {x: sorted(set(_FLAG.findall(text))) for x, text in pages.items()},
        "variables": sorted(
            set(_VARIABLE.findall(_shown(tag, "docs/reference/environment.md")))
        ),
        "snapshots": {
            name: rendered(yaml.safe_load_all(text)) for name, text in texts.items()
        },
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


def _shown(tag: str, path: str) -> str:
    done = subprocess.run(
        ["git", "show", f"{tag}:{path}"],
        capture_output=True,
        text=True,
        timeout=_GIT_S,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
