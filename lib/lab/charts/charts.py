"""The charts of the tree, and the snapshots of what helm renders from them.

A snapshot is NAME.yaml in a chart's snapshots/, made from NAME.values.yaml beside it.
Reviewers read it; a test renders it again and compares.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import yaml

from lib.lab import places
from lib.lab.artifacts import go_modules
from lib.lab.charts import helm
from lib.lab.kube.kube_objects import Json

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PLATFORM = "d8-cloud-provider-openstack"
"""The namespace in which Deckhouse runs what knows OpenStack."""
PLATFORM_OF_DVP = "d8-cloud-provider-dvp"
SYSTEM = "kube-system"
OPENSTACK = "openstack"
UMBRELLA = "cloud-provider-openstack"
"""The chart of all components for OpenStack; contains the chart of each."""
COMPONENTS = ("cloud-data-discoverer", "csi-controller", "csi-node", "openstack-ccm")
"""Charts of the umbrella."""
DVP_UMBRELLA = "cloud-provider-dvp"
UMBRELLAS: Mapping[str, Sequence[str]] = {
    UMBRELLA: COMPONENTS,
    DVP_UMBRELLA: (
        "capdvp",
        "cloud-data-discoverer",
        "csi-controller",
        "csi-node",
        "dvp-ccm",
    ),
}
"""Charts of all components of a cloud, with their components."""
LIBRARY = "library"
"""The chart whose templates the others use; each contains it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """One set of values of a chart. namespace: into which it is rendered."""

    chart: str
    name: str
    namespace: str

    def values(self, root: pathlib.Path) -> pathlib.Path:
        """Return the file with the values; root: of the checkout."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.values.yaml"

    def file(self, root: pathlib.Path) -> pathlib.Path:
        """Return the file with what was rendered."""
        return folder(root, self.chart) / "snapshots" / f"{self.name}.yaml"

    def objects(self, root: pathlib.Path, kind: str = "") -> list[Json]:
        """Return what was rendered, or those of one kind."""
        text = self.file(root).read_text()
        documents = yaml.load_all(text, _LOADER)
        return [
            document
            for document in documents
            if document and kind in ("", document["kind"])
        ]

    def workloads(self, root: pathlib.Path) -> dict[str, Json]:
        """Return the spec of each Deployment and DaemonSet, by name."""
        documents = self.objects(root)
        return {
            document["metadata"]["name"]: dict(document["spec"])
            for kind in ("Deployment", "DaemonSet")
            for document in documents
            if document["kind"] == kind
        }

    def deployment(self, root: pathlib.Path) -> Json:
        """Return the spec of its only Deployment or DaemonSet."""
        (workload,) = self.workloads(root).values()
        return workload

    def pod(self, root: pathlib.Path) -> Json:
        """Return the spec of that workload's Pods."""
        return dict(self.deployment(root)["template"]["spec"])

    def all_values(self, root: pathlib.Path) -> Json:
        """Return its values over those of the chart, as helm lays them."""
        usual = (folder(root, self.chart) / "values.yaml").read_text()
        values = self.values(root).read_text()
        return merged(yaml.safe_load(usual), yaml.safe_load(values))


SNAPSHOTS = (
    Snapshot(UMBRELLA, "balancers-only", SYSTEM),
    Snapshot(UMBRELLA, "deckhouse", PLATFORM),
    Snapshot(UMBRELLA, "defaults", SYSTEM),
    Snapshot(UMBRELLA, "one-host", SYSTEM),
    Snapshot(UMBRELLA, "production", "openstack-system"),
    Snapshot(DVP_UMBRELLA, "child", "dvp-system"),
    Snapshot(DVP_UMBRELLA, "deckhouse", PLATFORM_OF_DVP),
    Snapshot(DVP_UMBRELLA, "defaults", SYSTEM),
    Snapshot(DVP_UMBRELLA, "own-secrets", SYSTEM),
    Snapshot(DVP_UMBRELLA, "production", "dvp-system"),
    Snapshot("capdvp", "deckhouse", PLATFORM_OF_DVP),
    Snapshot("capdvp", "usual", "capdvp-system"),
    Snapshot("cloud-data-discoverer", "proxy", PLATFORM),
    Snapshot("cloud-data-discoverer", "secure-port", PLATFORM),
    Snapshot("cloud-data-discoverer", "dvp", SYSTEM),
    Snapshot("csi-controller", "own-secret", SYSTEM),
    Snapshot("csi-controller", "shared-secret", PLATFORM),
    Snapshot("csi-controller", "dvp", SYSTEM),
    Snapshot("csi-node", "sidecars", PLATFORM),
    Snapshot("csi-node", "usual", SYSTEM),
    Snapshot("csi-node", "dvp", SYSTEM),
    Snapshot("dvp-ccm", "deckhouse", PLATFORM_OF_DVP),
    Snapshot("dvp-ccm", "usual", SYSTEM),
    Snapshot("openstack-ccm", "beside-the-reference", PLATFORM),
    Snapshot("openstack-ccm", "usual", SYSTEM),
    Snapshot("osdpl-controller", "all", OPENSTACK),
    Snapshot("osdpl-controller", "plain", OPENSTACK),
)


def of(chart: str) -> Mapping[str, Snapshot]:
    """Return the snapshots of a chart by their names."""
    return {
        snapshot.name: snapshot for snapshot in SNAPSHOTS if snapshot.chart == chart
    }


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


def refused(root: pathlib.Path, chart: str, values: Mapping[str, Any]) -> list[str]:
    """Return the fields of values that a chart's schema refuses."""
    text = (folder(root, chart) / "values.schema.json").read_text()
    schema = json.loads(text)
    jsonschema.Draft7Validator.check_schema(schema)
    wrong = jsonschema.Draft7Validator(schema).iter_errors(values)
    return sorted({".".join(map(str, error.absolute_path)) for error in wrong})


def folder(root: pathlib.Path, chart: str) -> pathlib.Path:
    """Return the folder of a chart; root: of the checkout."""
    return root / "charts" / chart


def render(where: places.Places, root: pathlib.Path, snapshot: Snapshot) -> str:
    """Render a chart with the values of a snapshot.

    Raises:
        LabError: helm is not built, or refuses the chart or its values.
    """
    chart = folder(root, snapshot.chart)
    return render_from(where, chart, snapshot.values(root), snapshot)


def render_from(
    where: places.Places, chart: pathlib.Path, values: pathlib.Path, snapshot: Snapshot
) -> str:
    """Render a chart from a folder or an archive, as a snapshot is rendered.

    Raises:
        LabError: as `render`.
    """
    words = (
        *("template", snapshot.chart, chart),
        *("--namespace", snapshot.namespace),
        *("--kube-version", go_modules.KUBERNETES_VERSION),
        *("--values", values),
    )
    return helm.run(where, words)


def library(root: pathlib.Path) -> Mapping[str, str]:
    """Return the texts of the library's files that helm loads, by path in it."""
    top = folder(root, LIBRARY)
    files = [top / "Chart.yaml", *sorted((top / "templates").iterdir())]
    return {str(file.relative_to(top)): file.read_text() for file in files}
