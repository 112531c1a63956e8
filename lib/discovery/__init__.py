"""The flow that reads what a cloud offers and tells the cluster.

Also the pure functions that turn configuration into Secrets and machine templates.
Speaks the cloud vocabulary and lib.kube; never imports a provider room.
"""
