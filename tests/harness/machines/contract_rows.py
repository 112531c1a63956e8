"""The rows of Cluster API's contract for infrastructure providers, by name.

Each is tested twice: on the flow with a cloud in memory, and on live objects.

Source: kubernetes-sigs/cluster-api docs/book/src/developer/providers/contracts.
"""

FIELDS = (
    "scope, names",
    "CRD label",
    "InfraCluster endpoint",
    "InfraCluster done",
    "failure domains",
    "InfraMachine id",
    "InfraMachine done",
    "placement",
    "addresses",
    "conditions",
    "terminal failure",
    "templates",
    "cluster template",
    "order of reading",
)
RULES = (
    "owner",
    "paused",
    "watch filter and namespace",
    "waits",
    "finalizer",
    "delete without cluster",
    "providerID match",
    "status lost by a move",
    "externally managed",
    "dry run of topology",
    "RBAC",
    "clusterctl",
)
