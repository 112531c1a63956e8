"""Runs csi-controller and the CSI sidecars, under the ServiceAccount of their chart.

The sidecars end when they lose the driver, as they do in a pod, where the kubelet
starts them again; here their user does, with `start_sidecars`.
"""

import pathlib
from collections.abc import Mapping, Sequence

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi_node
from lib.lab.kube import cluster, control_plane
from lib.lab.run import processes
from lib.process import unix_sockets

NAME = "csi-controller"
ACCOUNT = ("kube-system", "csi-controller")
SIDECARS = ("csi-provisioner", "csi-attacher", "csi-resizer")
ELECTION = ("--leader-election", "--leader-election-namespace=kube-system")
"""Of all sidecars, when one is to lead as in the chart."""
GROUP = "csi"
"""Of the sidecars, which must be built."""
SANITY_GROUP = "csi-sanity"
"""Of the test suite, which tests alone build."""
CLUSTER = "storage-node"
"""The ownership metadata of the volumes of a lab."""
CLASS = "mooring-lab"
"""The default StorageClass of a lab without a real node."""
_TIMEOUT_S = 180
"""Of each call. Source: the reference's manifests (--timeout=3m)."""
_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "csi-provisioner": (
        "--default-fstype=ext4",
        "--feature-gates=Topology=true",
        "--strict-topology",
        "--extra-create-metadata",
        "--worker-threads=10",
        "--retry-interval-max=5s",
    ),
    "csi-attacher": (
        "--worker-threads=10",
        "--retry-interval-max=5s",
    ),
    "csi-resizer": (
        "--workers=10",
        "--handle-volume-inuse-error=false",
        "--retry-interval-max=5s",
    ),
}
"""Source: kubernetes/cloud-provider-openstack manifests/cinder-csi-plugin; Deckhouse's
numbers of workers. A test does not wait five minutes for another try."""


def manifest(*, reads_claims: bool = False) -> str:
    """Return the manifests of the chart: the CSIDriver and the permissions.

    reads_claims: whether the driver runs with --pvc-annotations.
    """
    # Two folders up from this file in a checkout, a sandbox and an unpacked PEX alike.
    files = pathlib.Path(__file__).parents[3] / "charts/csi-controller/files"
    names = ["csidriver.yaml", "rbac.yaml"]
    names += ["rbac-pvc-annotations.yaml"] if reads_claims else []
    return "---\n".join((files / name).read_text() for name in names)


def default_class(zone: str) -> str:
    """Return the manifest of a default StorageClass for a cluster without csi-node.

    zone: of the volumes; external-provisioner would take it from a node's csi-node.
    """
    return f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {CLASS}
  annotations: {{storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: {csi_node.DRIVER}
allowVolumeExpansion: true
allowedTopologies:
  - matchLabelExpressions: [{{key: {csi_node.ZONE_KEY}, values: [{zone}]}}]
"""


def allow(where: places.Places, driver: str = csi_node.DRIVER) -> pathlib.Path:
    """Create the CSIDriver and the ServiceAccount; return the latter's kubeconfig.

    driver: name of the CSIDriver.

    Raises:
        LabError: the control plane does not answer.
    """
    text = manifest().replace(csi_node.DRIVER, driver)
    control_plane.apply_manifests(where, text)
    kubeconfig = control_plane.admin_kubeconfig(where)
    target = where.state / "csi-controller.kubeconfig"
    api = cluster.connect(kubeconfig)
    cluster.service_account_kubeconfig(api, kubeconfig, ACCOUNT, target)
    return target


def address(where: places.Places) -> pathlib.Path:
    """Return the socket of the driver."""
    return where.state / "csi.sock"


def start_driver(
    where: places.Places,
    pex: pathlib.Path,
    cloud_conf: pathlib.Path,
    cluster: str,
    extra: Sequence[str] = (),
) -> None:
    """Start csi-controller, unless it runs, and wait until it listens.

    cluster: the ownership metadata of its volumes. extra: more of its command line.

    Raises:
        LabError: it ended, or did not listen in time.
    """
    start(where, pex, (*on_openstack(cloud_conf, cluster), *extra))


def on_openstack(cloud_conf: pathlib.Path, cluster: str) -> tuple[str, ...]:
    """Return the flags of csi-controller on OpenStack. cluster: see `start_driver`."""
    return (
        "--cloud=openstack",
        f"--cloud-config={cloud_conf}",
        f"--cluster={cluster}",
    )


def start(
    where: places.Places,
    pex: pathlib.Path,
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
) -> None:
    """Start csi-controller of some cloud, unless it runs, and wait until it listens.

    words: its command line without endpoint and format of logs. env: more variables.

    Raises:
        LabError: it ended, or did not listen in time.
    """
    command = [
        *pexes.command(pex),
        f"--endpoint=unix://{address(where)}",
        "--logging-format=json",
        *words,
    ]
    whole = {**pexes.environment(where), **(env or {})}
    processes.start(where, NAME, command, whole)
    socket = address(where)
    processes.wait_for(where, NAME, lambda: unix_sockets.is_served(socket))


def arguments(name: str) -> tuple[str, ...]:
    """Return the flags of a sidecar besides those of driver and API server.

    name: one of SIDECARS.
    """
    return (
        f"--timeout={_TIMEOUT_S}s",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
        *_ARGUMENTS[name],
    )


def start_sidecars(
    where: places.Places,
    kubeconfig: pathlib.Path,
    extra: Sequence[str] = (),
    socket_path: pathlib.Path | None = None,
) -> None:
    """Start those sidecars that do not run; they wait for the driver themselves.

    extra: more of each one's command line. socket_path: where they find the driver;
    None: its own socket.

    Raises:
        LabError: one is not built.
    """
    for name in SIDECARS:
        words = (
            str(programs.path(where, name)),
            f"--csi-address={socket_path or address(where)}",
            f"--kubeconfig={kubeconfig}",
            *arguments(name),
            *extra,
        )
        processes.start(where, name, words)


def stop(where: places.Places) -> None:
    """End all of it; fine when nothing runs."""
    processes.stop(where, (*SIDECARS, NAME))
