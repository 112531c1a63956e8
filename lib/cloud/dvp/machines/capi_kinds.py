"""The kinds of Cluster API for DVP, as components describe them to the flows.

Source: deckhouse modules/030-cloud-provider-dvp, capdvp-controller-manager (API types).
"""

from lib.kube.resources import Resource

GROUP = "infrastructure.cluster.x-k8s.io"
VERSION = "v1alpha1"
MACHINES = Resource(GROUP, VERSION, "deckhousemachines", "DeckhouseMachine", True)
TEMPLATES = Resource(
    GROUP, VERSION, "deckhousemachinetemplates", "DeckhouseMachineTemplate", True
)
MACHINE_FINALIZER = f"deckhousemachine.{GROUP}"
CLUSTERS = Resource(GROUP, VERSION, "deckhouseclusters", "DeckhouseCluster", True)
CLUSTER_FINALIZER = f"deckhousecluster.{GROUP}"
CLUSTER_TEMPLATES = Resource(
    GROUP, VERSION, "deckhouseclustertemplates", "DeckhouseClusterTemplate", True
)
"""For a ClusterClass: the core of Cluster API makes DeckhouseClusters of it."""
CONDITION = "VirtualMachineReady"
"""Type of the condition that shows the state of the VM."""
FIELD_MANAGER = "capdvp"
MIRRORS = (("ready",), ("initialization", "infrastructureProvisioned"))
"""Paths in status that repeat `initialization.provisioned` for older contracts."""
