"""The flow that stages and publishes volumes on a node: observe, decide, act.

It uses the protocol of `lib/kernel`, and neither a cloud nor Kubernetes.
"""
