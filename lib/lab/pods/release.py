"""A release of an umbrella chart in a lab's cluster, installed by the real helm."""

import json
import pathlib
from collections.abc import Sequence

from lib.lab import places
from lib.lab.charts import helm
from lib.lab.kube import control_plane
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import cluster_pods


def run(where: places.Places, words: Sequence[str | pathlib.Path]) -> str:
    """Run helm on the namespace of the release; return its output.

    Raises:
        LabError: as `helm.run`.
    """
    space = ("--namespace", cluster_pods.SYSTEM)
    return helm.run(where, (*words, *space), control_plane.admin_kubeconfig(where))


def install(
    where: places.Places, chart: pathlib.Path, values: Json, verb: Sequence[str]
) -> None:
    """Install a chart, or upgrade to it. verb: ("install",), or ("upgrade", ...).

    The release has the name of the folder of the chart.

    Raises:
        LabError: as `helm.run`.
    """
    file = where.state / "pods.values.json"
    file.write_text(json.dumps(values))
    run(where, (*verb, chart.name, chart, "--values", file))
