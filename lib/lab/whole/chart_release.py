"""Components in pods: the node of a lab, and the release of its umbrella chart."""

import pathlib
import tempfile
from collections.abc import Mapping

from lib.kube import resources
from lib.lab import errors
from lib.lab.artifacts import pexes
from lib.lab.charts import charts
from lib.lab.daemons import csi, csi_node
from lib.lab.grounds import chart_grounds
from lib.lab.kube import kube_objects, kubelet, kubelet_files
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import (
    cluster_pods,
    host_keeper,
    node_values,
    pod_host,
    pod_images,
    release,
    sidecars,
)
from lib.lab.run import progress
from lib.lab.status import table
from lib.lab.whole import parts, record

_FOLDER_CHARACTERS = 60
"""Of the value kubeletDirectory of csi-node: the path of a socket is limited."""
_VERB = ("upgrade", "--install")


def of(lab: parts.Lab) -> chart_grounds.LabCharts:
    """Return the umbrella chart of the lab's cloud.

    Raises:
        LabError: it has none.
    """
    if not isinstance(lab.grounds, chart_grounds.ChartGrounds):
        raise errors.LabError(f"--charts: {lab.grounds.title} has no chart in this lab")
    return lab.grounds.charts


def components(lab: parts.Lab) -> tuple[str, ...]:
    """Return the components of the chart that are to run; csi-node needs csi."""
    chosen = {*lab.components, *([csi_node.NAME] if lab.has_claims else [])}
    return tuple(name for name in of(lab).components if name in chosen)


def archives(lab: parts.Lab) -> Mapping[str, pathlib.Path]:
    """Return the archives of the images that the lab needs, by component.

    Raises:
        LabError: one is not built.
    """
    return pod_images.find(pathlib.Path(lab.record.images), components(lab))


def chart(lab: parts.Lab) -> pathlib.Path:
    """Return the folder of the umbrella chart.

    Raises:
        LabError: this installation of the tool lacks it.
    """
    # Three folders up in a checkout, a sandbox and an unpacked PEX alike.
    folder = pathlib.Path(__file__).parents[3] / "charts" / of(lab).chart
    if not (folder / "Chart.yaml").is_file():
        raise errors.LabError(f"{folder}: no chart")
    return folder


def require(lab: parts.Lab, *, can_build: bool) -> None:
    """Find out, before anything long begins, what is missing.

    can_build: images that are missing are built.

    Raises:
        LabError: this machine cannot be a node, the path of the lab is too long, or an
            image or the chart is missing.
    """
    if not lab.is_own:
        raise errors.LabError("--charts needs the lab's own cluster and cloud")
    chart(lab)
    folder = str(kubelet_files.kubelet_room(lab.where))
    if len(folder) > _FOLDER_CHARACTERS:
        raise errors.LabError(
            f"folder of the kubelet {folder}: {len(folder)} characters, must be at most"
            f" {_FOLDER_CHARACTERS}: set XDG_STATE_HOME to a shorter folder"
        )
    folder_of_images = pathlib.Path(lab.record.images)
    absent = pod_images.missing(folder_of_images, components(lab)) if can_build else ()
    present = [name for name in components(lab) if name not in absent]
    for file in pod_images.find(folder_of_images, present).values():
        pod_images.reference(file)
    if reason := pod_host.unavailable(lab.where):
        raise errors.LabError(f"this machine can't be a node: {reason}")


def host(lab: parts.Lab) -> pod_host.HostSettings:
    """Return the node of the lab, whose server exists.

    Raises:
        LabError: its server was not created.
    """
    cloud = lab.cloud()
    server_id = parts.wait_for_servers(cloud, [record.NODE])[record.NODE]
    server = next(item for item in cloud.items() if item.id == server_id)
    if not server.addresses:
        raise errors.LabError(f"server {record.NODE} has no address")
    return of(lab).host(lab.where, record.NODE, server_id, server.addresses[0])


def start_host(lab: parts.Lab) -> None:
    """Start the node with the process that keeps it.

    Raises:
        LabError: it did not start.
    """
    host(lab)
    host_keeper.up(lab.where, pexes.path(lab.where, pexes.TOOL))


def load_images(lab: parts.Lab, step: progress.ProgressStep) -> None:
    """Import the images of components and sidecars into containerd.

    Raises:
        LabError: containerd rejects one.
    """
    for name, file in archives(lab).items():
        step.note(name)
        kubelet.load_image(lab.where, file)
    if lab.has_claims:
        step.note(", ".join(csi.SIDECARS))
        with tempfile.TemporaryDirectory(dir=lab.where.state) as folder:
            sidecars.load(lab.where, pathlib.Path(folder))


def install(lab: parts.Lab) -> None:
    """Create the Secrets, and install the chart or upgrade to it.

    Raises:
        LabError: helm failed. KubeError: the API server refused.
    """
    objects = kube_objects.Objects(lab.api(), cluster_pods.SYSTEM)
    labels = {"labels": {node_values.CONTROL_PLANE: ""}}
    objects.patch(resources.NODES, record.NODE, metadata=labels)
    for name, texts in of(lab).secrets(lab.where).items():
        objects.write_secret(name, texts)
    release.install(lab.where, chart(lab), values(lab), _VERB)


def values(lab: parts.Lab) -> Json:
    """Return the values of the chart: its pods run on the lab's real node alone."""
    running = components(lab)
    images = {
        name: {"image": pod_images.reference(file)}
        for name, file in archives(lab).items()
    }
    own: Json = {
        "global": {"nodeSelector": {"kubernetes.io/hostname": record.NODE}},
        "components": {name: name in running for name in of(lab).components},
        **images,
    }
    return charts.merged(of(lab).values(lab.where), own)


def status(lab: parts.Lab) -> tuple[table.PodRow, ...]:
    """Return the state of the pod of each component; of none without charts."""
    if not lab.record.charts:
        return ()
    newest, label = pods(lab).newest(), of(lab).label
    return tuple(table.pod(name, newest.get(label(name))) for name in components(lab))


def pods(lab: parts.Lab) -> cluster_pods.ClusterPods:
    """Open the pods of the release."""
    objects = kube_objects.Objects(lab.api(), cluster_pods.SYSTEM)
    return cluster_pods.ClusterPods(lab.where, objects)
