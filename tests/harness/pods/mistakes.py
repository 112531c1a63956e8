"""Pods that cannot run, as mistakes in values or in the cluster cause them."""

import dataclasses
import pathlib
import struct
from collections.abc import Mapping, Sequence

from lib.kube import resources
from lib.lab.artifacts import oci_image, programs
from lib.lab.images import package_lock
from lib.lab.kube import kubelet
from tests.harness.pods import pod_node

COMPONENT = "osdpl-controller"
"""Value of the label `app`: a component that the umbrella does not contain."""
OTHER_MACHINE = "localhost/pods/other-machine:1"
ABSENT = "localhost/pods/absent:1"
_MACHINE_AT, _AARCH64, _X86_64 = 18, 183, 62
"""Source: ELF, e_machine."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mistake:
    """A Pod that does not run. spec, container: parts that differ from a valid one.

    reasons: one of these is reported. text, remedy: parts of message and remedy.
    """

    reasons: Sequence[str]
    text: str
    remedy: str
    spec: Mapping[str, object] = dataclasses.field(default_factory=dict)
    container: Mapping[str, object] = dataclasses.field(default_factory=dict)


def _secret(**source: object) -> Mapping[str, object]:
    return {"volumes": [{"name": "config", "secret": source}]}


_MOUNTED = {"volumeMounts": [{"name": "config", "mountPath": "/etc/config"}]}
_NO_KEY = {"key": "absent", "path": "absent"}
_OF_KEY = {"secretKeyRef": {"name": pod_node.SECRET, "key": "absent"}}
MISTAKES: Mapping[str, Mistake] = {
    "image that no registry has": Mistake(
        ("ErrImagePull", "ImagePullBackOff"),
        ABSENT,
        "the registry",
        container={"image": ABSENT},
    ),
    "name of an image": Mistake(
        ("InvalidImageName",), "A:b:c", "image", container={"image": "A:b:c"}
    ),
    "image of another architecture": Mistake(
        ("RunContainerError", "StartError", "CrashLoopBackOff"),
        "exec format error",
        "",
        container={"image": OTHER_MACHINE},
    ),
    "Secret": Mistake(
        ("FailedMount",),
        '"absent" not found',
        "create the Secret",
        _secret(secretName="absent"),
        _MOUNTED,
    ),
    "key of the Secret": Mistake(
        ("FailedMount",),
        "non-existent secret key: absent",
        "create the Secret",
        _secret(secretName=pod_node.SECRET, items=[_NO_KEY]),
        _MOUNTED,
    ),
    "key of the Secret for a variable": Mistake(
        ("CreateContainerConfigError",),
        "absent",
        "create the Secret",
        container={"env": [{"name": "OS_REGION", "valueFrom": _OF_KEY}]},
    ),
    "argument": Mistake(
        ("CrashLoopBackOff",),
        "exit code 2: ",
        "--previous",
        container={"args": ["--clod=openstack"]},
    ),
    "labels of Nodes": Mistake(
        ("Unschedulable",),
        "0/1 nodes are available",
        "nodeSelector",
        {"nodeSelector": {"absent": "absent"}},
    ),
}


def load(node: pod_node.PodNode, folder: pathlib.Path) -> None:
    """Import an image with a program of another architecture.

    Raises:
        LabError: containerd rejects it.
    """
    content = bytearray(programs.path(node.where, "pause").read_bytes())
    (machine,) = struct.unpack_from("<H", content, _MACHINE_AT)
    other = _X86_64 if machine == _AARCH64 else _AARCH64
    struct.pack_into("<H", content, _MACHINE_AT, other)
    file = folder / "other-machine.tar"
    image = oci_image.archive(
        OTHER_MACHINE, "pause", bytes(content), package_lock.architecture()
    )
    file.write_bytes(image)
    kubelet.load_image(node.where, file)


def create(node: pod_node.PodNode, name: str, mistake: Mistake) -> None:
    """Create the Pod of a mistake; its label names COMPONENT."""
    container = {
        "name": "c",
        "image": node.images["csi-node"].reference,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **mistake.container,
    }
    node.system.make(
        resources.PODS,
        name,
        {"labels": {"app.kubernetes.io/name": COMPONENT}},
        spec={
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **mistake.spec,
        },
    )
