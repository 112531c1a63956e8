"""Owned resources that belong to no Kubernetes object: listed, and deleted on request.

Pure decisions over what a cloud lists and what a cluster has, and the deletion through
open plans. Knows the vocabulary of clouds and the runtime, no provider and no flow.
Entry points and flows may import it.
"""
