"""Users of the node: a Service, a claim, and a pod that writes to its volume."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Generic, TypeVar

from lib.kube import resources
from lib.lab.pods import pod_host
from tests.harness.pods import installed_node

NodeT = TypeVar("NodeT", bound=installed_node.InstalledNode)
USER = 64535
CLAIM, WRITER, SERVICE = "data", "writer", "web"
_SCRIPT = """
import os, time
file = open("/data/lines", "a", buffering=1)
identity = os.fstat(file.fileno())
for number in range(1 << 30):
    file.write(f"{number}\\n")
    os.fsync(file.fileno())
    same = os.stat("/data/lines")
    assert (same.st_dev, same.st_ino) == (identity.st_dev, identity.st_ino)
    print(number, flush=True)
    time.sleep(0.2)
"""
"""It ends if its open file is not the one that the path leads to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Users(Generic[NodeT]):
    """What the users of a node have created in the namespace default."""

    node: NodeT

    def add_service(self, name: str = SERVICE) -> None:
        """Create a Service of the type LoadBalancer."""
        self.node.default.make(
            resources.SERVICES,
            name,
            {"annotations": dict(self.node.service_annotations)},
            spec={
                "type": "LoadBalancer",
                "selector": {"app": name},
                "ports": [{"port": 80, "targetPort": 8080}],
            },
        )

    def ingress(self, name: str = SERVICE) -> list[Mapping[str, str]]:
        """Return the addresses of the Service."""
        service = self.node.default.get(resources.SERVICES, name) or {}
        status = service.get("status", {}).get("loadBalancer", {})
        return list(status.get("ingress", ()))

    def has_service(self, name: str = SERVICE) -> bool:
        """Report whether the Service exists."""
        return self.node.default.get(resources.SERVICES, name) is not None

    def add_writer(self) -> None:
        """Create a claim, and a pod of one of our images that writes all the time."""
        self.node.default.make(
            resources.CLAIMS,
            CLAIM,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.node.storage_class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        )
        container = {
            "name": "c",
            # Any image with Python.
            "image": self.node.images["csi-controller"].reference,
            "command": ["/usr/bin/python3.11", "-IBc", _SCRIPT],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        self.node.default.make(
            resources.PODS,
            WRITER,
            spec={
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "securityContext": {"runAsUser": USER, "fsGroup": USER},
                "containers": [container],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}
                ],
            },
        )

    def expand(self) -> None:
        """Request 2 GiB for the claim."""
        spec = {"resources": {"requests": {"storage": "2Gi"}}}
        self.node.default.patch(resources.CLAIMS, CLAIM, spec=spec)

    def capacity(self) -> str:
        """Return the capacity in the status of the claim."""
        claim = self.node.default.get(resources.CLAIMS, CLAIM) or {}
        return str(claim.get("status", {}).get("capacity", {}).get("storage", ""))

    def written(self) -> int:
        """Return the number of lines that the pod has written; -1 without any.

        Raises:
            AssertionError: the pod has ended.
        """
        folder = pod_host.logs(self.node.where)
        files = sorted(folder.glob(f"default_{WRITER}_*/c/*.log"))
        lines = files[-1].read_text().splitlines() if files else []
        pod = self.node.default.get(resources.PODS, WRITER) or {"status": {}}
        phase = pod["status"].get("phase")
        assert phase in ("Pending", "Running"), (phase, lines[-20:])
        return int(lines[-1].split(" ")[3]) if lines else -1

    def writes_on(self) -> None:
        """Wait until the pod has written once more."""
        before = self.written()
        self.node.until(
            "the pod writes to its open file", lambda: self.written() > before
        )

    def mounts(self) -> list[str]:
        """Return the targets of volumes that are mounted below the kubelet's folder."""
        lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        targets = [line.split(" ")[4] for line in lines]
        return sorted(x for x in targets if "kubernetes.io~csi" in x)
