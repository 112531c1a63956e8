"""Components of an infrastructure provider for clusterctl, rendered from its chart.

Source: kubernetes-sigs/cluster-api docs/book, clusterctl provider contract: one file
with a Namespace, CRDs and all other objects, in which ${VARIABLES} are replaced.
"""

import pathlib
import tempfile
from collections.abc import Mapping

import yaml

from lib.lab import places
from lib.lab.charts import charts

CHART = "capdvp"
NAMESPACE = "capdvp-system"
FILE = "clusterctl/infrastructure-components.yaml"
PROVIDER = "cluster.x-k8s.io/provider: infrastructure-dvp"
VARIABLES: Mapping[str, str] = {
    "variable-secret": "DVP_KUBECONFIG_SECRET",
    "variable-namespace": "DVP_NAMESPACE",
    "variable-uuid": "CLUSTER_UUID",
}
"""Values with which the chart is rendered, and the variables that replace them."""
_CONTAINER = "        - name: {}\n          image:"
"""The container of the program. Source: clusterctl provider contract: it must be called
manager, by which clusterctl and tools that follow it find the program."""
REGISTRY = "registry.example/mooring"
"""Of the image, until `images` of clusterctl's configuration names another: a variable
is no image for commands that read the file without replacing variables (`clusterctl
generate provider --describe`, `clusterctl init list-images`)."""
_VALUES = """\
image: {image}
parent: {{secretName: variable-secret, namespace: variable-namespace}}
clusterUUID: variable-uuid
"""
_HEAD = f"""\
# Rendered from charts/{CHART} by `mooring lab charts`.
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    {PROVIDER}
"""


def components(where: places.Places, root: pathlib.Path) -> str:
    """Return the file. root: of the checkout.

    Raises:
        LabError: as `charts.render`.
    """
    chart = charts.folder(root, CHART)
    crds = [path.read_text() for path in sorted((chart / "crds").glob("*.yaml"))]
    snapshot = charts.Snapshot(CHART, "clusterctl", NAMESPACE)
    with tempfile.TemporaryDirectory() as folder:
        values = pathlib.Path(folder) / "values.yaml"
        values.write_text(_VALUES.format(image=_image(chart)))
        rendered = charts.render_from(where, chart, values, snapshot)
    rendered = rendered.replace(_CONTAINER.format(CHART), _CONTAINER.format("manager"))
    for value, variable in VARIABLES.items():
        rendered = rendered.replace(value, f"${{{variable}}}")
    return "---\n".join([_HEAD, *crds, rendered.removeprefix("---\n")])


def _image(chart: pathlib.Path) -> str:
    version = yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]
    return f"{REGISTRY}/{CHART}:{version}"


def rewrite(where: places.Places, root: pathlib.Path) -> pathlib.Path | None:
    """Write the file; return its path if it has changed.

    Raises:
        LabError: as `charts.render`; the file stays as it was.
    """
    path, text = charts.folder(root, CHART) / FILE, components(where, root)
    if path.exists() and path.read_text() == text:
        return None
    path.write_text(text)
    return path
