"""The kinds of Cluster API for zVirt, as components describe them to the flows.

Source: deckhouse modules/030-cloud-provider-zvirt, capz-controller-manager (API types).
"""

from lib.kube.resources import Resource

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION = "v1"
MACHINES = Resource(GROUP, VERSION, "zvirtmachines", "ZvirtMachine", True)
TEMPLATES = Resource(
    GROUP, VERSION, "zvirtmachinetemplates", "ZvirtMachineTemplate", True
)
CLUSTERS = Resource(GROUP, VERSION, "zvirtclusters", "ZvirtCluster", True)
MACHINE_FINALIZER = f"zvirtmachine.{GROUP}"
CONDITION = "VirtualMachineReady"
"""Type of the condition that shows the state of the VM."""
FIELD_MANAGER = "capz"
MIRRORS = (("ready",),)
"""Paths in status that repeat `initialization.provisioned` for the older contract."""
ID_PATH = ("id",)
"""Where in spec the UUID of the VM is."""
