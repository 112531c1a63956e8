"""helm 3 beside the lab's helm, for tests of what a user of it has.

Source: modules/helm3/go.mod and go.sum.
"""

from lib.lab.artifacts import single_program

PROGRAM = single_program.SingleProgram(
    "helm3", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3"
)
