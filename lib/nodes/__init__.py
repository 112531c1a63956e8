"""The flow that keeps Nodes and instances 1:1.

Speaks the cloud vocabulary and lib.kube; never imports a provider room.
"""
