"""clusterctl of Cluster API, built from a pinned Go module, once per machine.

Source: modules/clusterctl/go.mod and go.sum; its version is that of the core.
"""

from lib.lab.artifacts import single_program

MODULE = "sigs.k8s.io/cluster-api"
PROGRAM = single_program.SingleProgram("clusterctl", f"{MODULE}/cmd/clusterctl", MODULE)
