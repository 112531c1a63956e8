"""DVP: the cloud is the API of a parent cluster, in which VMs are objects.

Rules: the parent is accessed through lib/kube alone, one watched store per kind for all
flows of a process; nothing outside the project's namespace is written.
"""
