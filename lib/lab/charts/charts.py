"""The charts of the tree, and the snapshots of what helm renders from them.

A snapshot is NAME.yaml in a chart's snapshots/, made from NAME.values.yaml beside it.
Reviewers read it; a test renders it anew and compares.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jsonschema
import yaml

from lib.lab import places
from lib.lab.artifacts import go_modules
from lib.lab.charts import helm
from lib.lab.kube.kube_objects import Json

PLATFORM = "d8-cloud-provider-openstack"
"""The namespace in which Deckhouse runs what knows OpenStack."""
SYSTEM = "kube-system"
OPENSTACK = "openstack"


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """One set of values of a chart. namespace: into which it is rendered."""

    chart: str
    name: str
    namespace: str

    def values(self, root: pathlib.Path) -> pathlib.Path:
        """Give the file with the values; root: of the checkout."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.values.yaml"

    def file(self, root: pathlib.Path) -> pathlib.Path:
        """Give the file with what was rendered."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.yaml"

    def objects(self, root: pathlib.Path, kind: str = "") -> list[Json]:
        """Give what was rendered, or those of one kind."""
        found = yaml.safe_load_all(self.file(root).read_text())
        return [one for one in found if one and kind in ("", one["kind"])]

    def deployment(self, root: pathlib.Path) -> Json:
        """Give the spec of its only Deployment."""
        (found,) = self.objects(root, "Deployment")
        return dict(found["spec"])

    def pod(self, root: pathlib.Path) -> Json:
        """Give the spec of that Deployment's Pods."""
        return dict(self.deployment(root)["template"]["spec"])

    def all_values(self, root: pathlib.Path) -> Json:
        """Give its values over those of the chart, as helm lays them."""
        usual = (folder(root, self.chart) / "values.yaml").read_text()
        given = self.values(root).read_text()
        return merged(yaml.safe_load(usual), yaml.safe_load(given))


SNAPSHOTS = (
    Snapshot("cloud-data-discoverer", "proxy", PLATFORM),
    Snapshot("cloud-data-discoverer", "secure-port", PLATFORM),
    Snapshot("csi-controller", "own-secret", SYSTEM),
    Snapshot("csi-controller", "shared-secret", PLATFORM),
    Snapshot("openstack-ccm", "beside-the-reference", PLATFORM),
    Snapshot("openstack-ccm", "usual", SYSTEM),
    Snapshot("osdpl-controller", "all", OPENSTACK),
    Snapshot("osdpl-controller", "plain", OPENSTACK),
)


def of(chart: str) -> Mapping[str, Snapshot]:
    """Give the snapshots of a chart by their names."""
    return {one.name: one for one in SNAPSHOTS if one.chart == chart}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Json:
    """Lay values over values, as helm does."""
    result = dict(below)
    for key, value in above.items():
        old = below.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = merged(old, value) if both and old is not None else value
        if value is None:
            del result[key]
    return result


def refused(root: pathlib.Path, chart: str, given: Mapping[str, Any]) -> list[str]:
    """Give the fields of values that a chart's schema refuses."""
    text = (folder(root, chart) / "values.schema.json").read_text()
    schema = json.loads(text)
    jsonschema.Draft7Validator.check_schema(schema)
    wrong = jsonschema.Draft7Validator(schema).iter_errors(given)
    return sorted({".".join(map(str, one.absolute_path)) for one in wrong})


def folder(root: pathlib.Path, chart: str) -> pathlib.Path:
    """Give the folder of a chart; root: of the checkout."""
    return root / "charts" / chart


def render(where: places.Places, root: pathlib.Path, snapshot: Snapshot) -> str:
    """Render a chart with the values of a snapshot.

    Raises:
        LabError: helm is not built, or refuses the chart or its values.
    """
    words = (
        *("template", snapshot.chart, folder(root, snapshot.chart)),
        *("--namespace", snapshot.namespace),
        *("--kube-version", go_modules.KUBERNETES_VERSION),
        *("--values", snapshot.values(root)),
    )
    return helm.run(where, words)


def rewrite(where: places.Places, root: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Render every snapshot into its file; give the files that have changed.

    Raises:
        LabError: as `render`; the files before it are written by then.
    """
    changed = []
    for snapshot in SNAPSHOTS:
        file, text = snapshot.file(root), render(where, root, snapshot)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            changed.append(file)
    return tuple(changed)
