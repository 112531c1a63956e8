"""Network of a node of its own, with a real kube-proxy."""
